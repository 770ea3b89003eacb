"""What every application has in common: a session, logging, checkpoints on Hadoop's file systems."""
