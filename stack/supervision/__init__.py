"""Runs the stack's processes: supervisord and its configuration, port checks, stray processes."""
