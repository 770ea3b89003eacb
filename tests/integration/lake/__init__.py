"""Tests of the lake's tables, jobs and checks."""
