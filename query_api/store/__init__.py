"""The local store of a query node: an interface, and one folder per backend that implements it."""
