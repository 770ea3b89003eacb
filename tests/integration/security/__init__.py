"""Who gets in: callers, nodes, and clients of Kafka and the registry."""
