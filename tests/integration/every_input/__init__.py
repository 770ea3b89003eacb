"""One run on a whole stack with inputs of every kind."""
