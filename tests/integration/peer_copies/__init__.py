"""Tests of a node with an empty store, which copies the records of the other node."""
