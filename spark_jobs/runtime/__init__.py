"""What all applications share: session, logging, and access to checkpoints on Hadoop's file systems."""
