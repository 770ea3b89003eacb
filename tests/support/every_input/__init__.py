"""A read model for events with inputs of every kind, and what it must make of them."""
