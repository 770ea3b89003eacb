"""Avro payloads, read without Spark: one by one, or many at once."""
