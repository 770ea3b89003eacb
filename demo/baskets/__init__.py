"""A year of a real grocer's baskets: the input of the demo."""
