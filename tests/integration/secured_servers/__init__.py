"""Tests with servers that require encryption and credentials."""
