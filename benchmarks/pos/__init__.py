"""Benchmarks of the system `pos`."""
