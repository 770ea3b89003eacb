"""All systems in one stack under a steady load: memory, lag and latency over time, and every result exact at the end."""
