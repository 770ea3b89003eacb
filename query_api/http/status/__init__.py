"""The status page at `/`, and the same as JSON at `/api/status`."""
