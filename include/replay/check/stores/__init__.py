"""The stores that a check with DuckDB reads, and the form of their records."""
