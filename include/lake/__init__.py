"""The lake as values: where the tables are, what each commit says, how far a table is, who may write it."""
