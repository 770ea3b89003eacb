"""Routes computed by Spark on a few records."""
