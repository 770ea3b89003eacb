"""Faults that tests inject into real servers: records of other programs, a network that stops, a full disk."""
