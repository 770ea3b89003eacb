"""Trains the stream driver's JVM on synthetic events, once, so that every later driver starts faster."""
