"""Hopping windows of event time, and lookups of the windows of a time range."""
