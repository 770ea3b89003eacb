"""The locations of active orders: the read model and its API."""
