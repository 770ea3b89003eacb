"""Periodic emissions: all records of a read model, written again at regular intervals."""
