"""Lookups by key: from the node's own store, or from the owner of the key's partition."""
