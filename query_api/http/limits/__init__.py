"""Limits of the HTTP server: what slow clients, many clients and a worker that hangs can take from the others."""
