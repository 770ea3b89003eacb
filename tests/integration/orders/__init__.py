"""The system `orders`."""
