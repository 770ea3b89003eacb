"""What several benchmarks use: deposits, a fast HTTP client, the output."""
