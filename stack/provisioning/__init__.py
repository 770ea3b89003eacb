"""Makes the tools directory: two Python environments, the jars and the schema registry. Needs Python and Java only."""
