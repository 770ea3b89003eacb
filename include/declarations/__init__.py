"""The kinds of declaration: what a read model says of itself, and how its declaration is found."""
