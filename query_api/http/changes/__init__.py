"""Streams of changes as Server-Sent Events: `GET /api/read-models/<name>/changes`."""
