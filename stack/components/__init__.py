"""The servers of the embedded stack, each with its configuration."""
