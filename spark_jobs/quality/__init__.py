"""The quality check's Spark job: stored records beside a replay of the events."""
