"""The read model `balance`, its events, and its API."""
