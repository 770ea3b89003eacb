"""What only tests and benchmarks use: stacks of their own, writers, oracles, and waiting for a condition."""
