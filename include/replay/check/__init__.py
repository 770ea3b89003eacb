"""The quality check with DuckDB: compares each stored record with a replay of the log."""
