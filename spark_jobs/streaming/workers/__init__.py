"""Threads of the driver beside its queries: expiry, and periodic emissions."""
