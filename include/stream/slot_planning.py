"""How many task slots the stream driver needs.

In real-time mode every task of every running query holds a slot for as long as the query runs: one for each source
partition and one for each shuffle partition. With too few slots, Spark fails the query that starts last, at every start.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

from include.settings import Settings

# The dead-letter query of a source has no shuffle: one task a source partition.
DEAD_LETTER_QUERIES = 1


class SlotRank(IntEnum):
    """The order in which queries get task slots where there are too few."""

    SERVING = 0  # the folds of live versions, and dead letters
    OTHER = 1
    CANDIDATE = 2
    PREVIOUS = 3


@dataclass(frozen=True)
class SlotClaim:
    """The task slots that a query needs; `order` decides within a rank, the lower first."""

    slots: int
    rank: SlotRank
    order: int = 0


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


def queries_with_slots(claims: Mapping[str, SlotClaim], running: Collection[str], available: int) -> set[str]:
    """Return the names of the queries that get task slots, of which `available` are there.

    Running queries keep theirs; the others follow by rank and order. A query whose claim does not fit gets none.
    """

    def priority(name: str) -> tuple[bool, SlotRank, int]:
        claim = claims[name]
        return name not in running, claim.rank, claim.order

    chosen = set()
    for name in sorted(claims, key=priority):
        if claims[name].slots <= available:
            chosen.add(name)
            available -= claims[name].slots
    return chosen
