"""Couriers of a simulated city: the input of the system `orders`, and which orders are active after it."""
