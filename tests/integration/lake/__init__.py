"""Tests of lake tables, lake jobs and quality checks."""
