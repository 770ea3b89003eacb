"""Routes on a real broker, registry and Spark."""
