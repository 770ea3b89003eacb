"""Decodes source records, folds them into states, and replays the log."""
