"""The lake's tables: their paths, the tags of their commits, their status, and the lock of their writer. Without Spark."""
