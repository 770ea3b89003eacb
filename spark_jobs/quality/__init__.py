"""The Spark job of the quality check: compares stored records with a replay of the events."""
