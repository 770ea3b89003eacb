"""The HTTP API: the fast path, Flask's routes, and errors as problem details."""
