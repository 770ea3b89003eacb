"""The stream as seen from outside its driver: status, checkpoints, task slots."""
