"""Commands: validated, then appended to the log as events."""
