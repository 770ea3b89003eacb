"""Removes from changelogs the keys of items that have expired, for every active version."""
