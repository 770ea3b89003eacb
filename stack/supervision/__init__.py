"""Running the stack's processes: supervisord, ports, stray processes, and a guard for stacks that must not outlive their owner."""
