"""Compacted topics: the newest record of each key, reports that are published every few seconds, and changelogs."""
