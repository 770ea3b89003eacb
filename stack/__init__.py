"""The embedded stack: all servers of the platform on one machine, on loopback."""
