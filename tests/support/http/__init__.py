"""HTTP clients of the tests."""
