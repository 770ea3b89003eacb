"""Which callers a node knows: the keys that it follows and the tokens that it verifies."""
