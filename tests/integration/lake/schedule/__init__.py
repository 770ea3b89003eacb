"""Tests of when the jobs of the lake run."""
