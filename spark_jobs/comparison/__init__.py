"""The states of two versions of a read model, compared key by key."""
