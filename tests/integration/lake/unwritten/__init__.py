"""States that their records cannot have."""
