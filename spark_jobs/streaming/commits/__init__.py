"""When queries commit, and what Spark reports about it."""
