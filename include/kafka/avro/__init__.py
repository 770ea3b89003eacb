"""Avro types as values: names resolved, defaults encoded, and which types of two schemas belong together."""
