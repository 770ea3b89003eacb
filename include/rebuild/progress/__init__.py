"""How far running rebuilds are."""
