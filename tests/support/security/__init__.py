"""Kafka and a schema registry that require encryption and credentials, for tests."""
