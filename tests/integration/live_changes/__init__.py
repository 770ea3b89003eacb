"""Tests of the streams of changes and of the map."""
