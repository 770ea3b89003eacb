"""The embedded stack: real servers of the whole platform on one machine, on loopback."""
