"""Launching Spark applications: one driver to a home, gone when its launcher is gone."""
