"""Avro schemas and payloads of any kind, for property tests."""
