"""When the items of a read model leave it."""
