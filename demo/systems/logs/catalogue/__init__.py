"""The product catalogue: from a compacted topic to a read model that every other one can be joined with."""
