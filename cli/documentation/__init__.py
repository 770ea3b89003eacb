"""The documentation: its site, and its pages that are generated from the code."""
