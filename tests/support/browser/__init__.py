"""A real browser for tests and screenshots."""
