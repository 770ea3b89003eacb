"""TLS for callers, and mutual TLS between nodes."""
