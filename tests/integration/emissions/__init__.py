"""Emissions on a real broker, with a real driver."""
