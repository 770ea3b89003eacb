"""The demos of systems, one module each."""
