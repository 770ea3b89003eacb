"""Incremental quality checks."""
