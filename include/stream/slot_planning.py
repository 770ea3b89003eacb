"""How many task slots the stream driver needs.

In real-time mode every task of every running query holds its slot for good: one for each source partition and one
for each shuffle partition. Where there are too few, Spark fails the query that comes last, again and again.
"""

from collections.abc import Collection, Mapping

from include.settings import Settings
from include.versions.registry import Stage, Version

# The dead-letter query of a source has no shuffle: one task a source partition.
DEAD_LETTER_QUERIES = 1
RANK = (Stage.LIVE, Stage.CANDIDATE, Stage.PREVIOUS)


def shuffle_partitions(settings: Settings, partitions: int) -> int:
    """Return the number of shuffle partitions of a query whose source has `partitions`: the setting, or as many."""
    return settings.stream.shuffle_partitions or partitions


def query_slots(settings: Settings, partitions: int) -> int:
    """Return the task slots of one version's query whose source has `partitions`."""
    return partitions + shuffle_partitions(settings, partitions)


def task_slots(settings: Settings, source_partitions: Collection[int]) -> int:
    """Return the task slots for one live version of each read model, spare queries for candidates, and dead letters.

    source_partitions: the number of partitions of each read model's source. A spare query may be the largest read model's.
    """
    queries = [query_slots(settings, partitions) for partitions in source_partitions]
    spare = settings.stream.spare_queries * max(queries, default=0)
    return sum(queries) + spare + DEAD_LETTER_QUERIES * sum(source_partitions)


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
