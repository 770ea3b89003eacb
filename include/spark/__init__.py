"""Spark's settings as data: whoever launches a JVM needs them before there is a session."""
