"""The schemas of writers that the schema registry holds, and the schema ids that are rejected."""
