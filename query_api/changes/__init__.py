"""Streams of changes: what happens to the keys of a read model, from its changelog, to any number of clients."""
