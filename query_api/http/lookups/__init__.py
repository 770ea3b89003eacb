"""Lookups over HTTP: one router, which the fast path (http/wsgi.py) and Flask's routes share."""
