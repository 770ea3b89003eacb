"""Running the stack's processes: supervisord and its configuration, ports, stray processes, and the guard of temporary stacks."""
