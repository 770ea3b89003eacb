"""Loyalty points by card: the route that gives invoices the card as their key, the read model, its API and its notifications."""
