"""When queries commit, and what Spark reports of it."""
