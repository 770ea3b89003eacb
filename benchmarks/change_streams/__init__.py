"""Streams of changes to many clients of one node."""
