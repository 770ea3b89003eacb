"""Explanations of keys."""
