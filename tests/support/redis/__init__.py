"""A real Redis for tests."""
