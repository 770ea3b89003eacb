"""Lookups over HTTP: one router, which the fast path and Flask's routes share."""
