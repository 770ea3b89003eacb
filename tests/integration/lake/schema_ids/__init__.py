"""Tests of how the schema ids of a topic are found."""
