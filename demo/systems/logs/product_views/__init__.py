"""Views of each product: the routes that give them the product as their key, the read model, its alerts, its regular counts, its API."""
