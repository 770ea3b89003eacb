"""What other processes use of the stream: its status, checkpoints and task slots."""
