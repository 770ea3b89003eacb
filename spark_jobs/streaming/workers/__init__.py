"""Threads of the driver beside its queries: expiry, and what they share with the writers of periodic emissions."""
