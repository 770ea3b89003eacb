"""Event tables that nobody declares: one for each topic whose events read models fold."""
