"""Viewers of the status page."""
