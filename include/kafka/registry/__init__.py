"""The schema registry: requests to it, and the schemas that it holds."""
