"""How long compaction takes, and what it leaves on the disk."""
