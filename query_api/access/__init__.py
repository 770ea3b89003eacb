"""Which callers a node knows: the keys that it follows, the tokens that it verifies, and the listener that a process serves."""
