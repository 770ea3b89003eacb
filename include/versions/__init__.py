"""The version registry: which version of each read model is live, and how that changes."""
