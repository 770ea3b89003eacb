"""How many task slots the stream driver needs.

In real-time mode every task of every running query holds its slot for good: one for each source partition and one
for each shuffle partition. Where there are too few, Spark fails the query that comes last, again and again.
"""

from collections.abc import Collection, Mapping

from include.settings import Settings
from include.versions.version_record import Stage, Version

# The dead-letter query of a source has no shuffle: one task a source partition.
DEAD_LETTER_QUERIES = 1
RANK = (Stage.LIVE, Stage.CANDIDATE, Stage.PREVIOUS)


def shuffle_partitions(settings: Settings) -> int:
    """Return the number of shuffle partitions of a query: the setting, or as many as the source has partitions."""
    return settings.stream.shuffle_partitions or settings.topics.partitions


def task_slots(settings: Settings, read_models: int = 1) -> int:
    """Return the task slots for one live version of each read model, spare queries for candidates, and dead letters."""
    each_query = settings.topics.partitions + shuffle_partitions(settings)
    queries = most_queries(settings, read_models)
    return queries * each_query + read_models * DEAD_LETTER_QUERIES * settings.topics.partitions


def most_queries(settings: Settings, read_models: int) -> int:
    """Return how many versions can be folded at once: a live one of each read model, and the spare ones."""
    return read_models + settings.stream.spare_queries


def queries_with_slots(versions: Mapping[str, Version], running: Collection[str], most: int) -> set[str]:
    """Return which versions are folded where there are slots for no more than `most`, by query name.

    Those that run stay; then live ones come first, then candidates, then previous ones, the one replaced last first.
    """

    def rank(name: str) -> tuple[bool, int, int]:
        version = versions[name]
        return name not in running, RANK.index(version.stage), -version.replaced_in

    return set(sorted(versions, key=rank)[:most])
