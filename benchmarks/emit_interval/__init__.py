"""What an emit interval saves and costs: records written, and latency."""
