"""Periodic emissions: the state of a live version, followed on its changelog, and written as a whole at each tick."""
