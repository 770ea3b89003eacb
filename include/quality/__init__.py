"""The quality check: whether the stored records are what the events in the log fold to, key by key."""
