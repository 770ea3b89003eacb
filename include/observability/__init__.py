"""What identifies a request in logs and traces, and the logs of all processes."""
