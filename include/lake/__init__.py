"""The lake as values: where the tables are, the tags of their commits, how far a table is, the lock of its writer."""
