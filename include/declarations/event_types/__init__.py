"""Event types: where their schemas are, the format of their events, and which of their fields are personal."""
