"""Tests of stream drivers."""
