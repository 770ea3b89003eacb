"""How many task slots the stream driver needs.

In real-time mode every task of every running query holds its slot for good: one for each source partition and one
for each shuffle partition. Too few, and a query waits for ever.
"""

from include.settings import Settings

# The dead-letter query of a source has no shuffle: one task a source partition.
DEAD_LETTER_QUERIES = 1


def shuffle_partitions(settings: Settings) -> int:
    """Return the number of shuffle partitions of a query: the setting, or as many as the source has partitions."""
    return settings.stream_shuffle_partitions or settings.partitions


def task_slots(settings: Settings, read_models: int = 1) -> int:
    """Return the task slots for one live version of each read model, spare queries for candidates, and dead letters."""
    each_query = settings.partitions + shuffle_partitions(settings)
    queries = read_models + settings.stream_spare_queries
    return queries * each_query + read_models * DEAD_LETTER_QUERIES * settings.partitions
