"""The last hour of each live version: its lag, the latency of its folds, and its throughput, sampled by the materializer."""
