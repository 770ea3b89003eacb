"""Shared by all applications: the Spark session, logging, and access to checkpoints through Hadoop's file systems."""
