"""Changelogs for tests of everything that reads one."""
