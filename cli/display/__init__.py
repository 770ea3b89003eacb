"""Terminal output shared by commands: the progress of starts and DAG runs, and the servers' addresses."""
