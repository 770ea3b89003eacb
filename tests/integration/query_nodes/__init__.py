"""Tests of the query nodes, on a stack of their own."""
