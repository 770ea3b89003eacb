"""The system `orders`: where the orders are that couriers are delivering, of which each lives for about half an hour."""
