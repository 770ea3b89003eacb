"""Who gets in: TLS for callers and between nodes."""
