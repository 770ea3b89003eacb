"""Metrics for Prometheus: of the node, and of the stream as a whole."""
