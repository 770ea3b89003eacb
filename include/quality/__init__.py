"""The quality check: whether each stored record equals the fold of its key's events in the log."""
