"""Checks on two engines."""
