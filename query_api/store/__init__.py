"""The local store of a query node: an interface, and one folder for each backend that implements it."""
