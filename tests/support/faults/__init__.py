"""Faults that a test injects into real servers: a network that stops, a disk that is full."""
