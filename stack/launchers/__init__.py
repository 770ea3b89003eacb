"""Launches Spark applications: one stream driver per home, and batch jobs. Each ends with its launcher."""
