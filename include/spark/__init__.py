"""Spark's settings as data, because they are needed to launch the JVM, before a session exists."""
