"""Who gets in: callers, nodes and jobs."""
