"""The local store of a query node: an interface, and LMDB behind it."""
