"""The system `orders`: tracks live courier orders, each for about half an hour."""
