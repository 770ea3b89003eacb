"""Launching Spark applications: one stream driver per home, and batch jobs; each ends with its launcher."""
