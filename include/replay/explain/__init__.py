"""Explains the state of a key with DuckDB: its events in order, with the state after each."""
