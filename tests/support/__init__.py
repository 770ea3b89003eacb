"""Support code for tests and benchmarks: temporary stacks, writers, oracles, and waiting for a condition."""
