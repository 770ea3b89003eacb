"""Tests of stream drivers, on a stack of their own."""
