"""Ledgers of events and what the tables of the lake must contain for them."""
