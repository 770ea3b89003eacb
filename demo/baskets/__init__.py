"""A year of purchases (baskets) at a real grocer: the input of the demo."""
