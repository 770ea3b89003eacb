"""The system `logs`: throughput from nothing, and the latency from a line to an answer."""
