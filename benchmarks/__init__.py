"""The benchmarks behind the README's figures: each measures one thing, verifies the result exactly, and describes the machine."""
