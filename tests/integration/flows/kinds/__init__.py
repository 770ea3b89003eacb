"""Kinds of declaration from outside, on a real broker, registry and Spark."""
