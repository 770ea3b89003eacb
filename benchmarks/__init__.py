"""The benchmarks behind the README's figures: each measures one thing, checks that the result is exact, and prints the machine."""
