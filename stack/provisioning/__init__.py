"""Creates the tools directory: two Python environments, the jars and the schema registry. Requires only Python and Java."""
