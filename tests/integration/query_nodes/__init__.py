"""Tests of the query nodes."""
