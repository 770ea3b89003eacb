"""Creates, merges into, replaces and maintains Delta tables."""
