"""Explains the state of a key: its events in order, with the state after each."""
