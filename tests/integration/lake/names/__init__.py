"""Fields with the names of columns that Foldlake itself uses."""
