"""Computes the task slots that the stream driver needs, and assigns them to queries.

In real-time mode every task of a query occupies a slot while the query runs: one for each source partition and one for each
shuffle partition. With too few slots, Spark fails the query that starts last, at every start.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

from include.machine import cores
from include.settings import StreamSettings

# For all queries that run in batches only.
BATCH_SLOTS = 2


class SlotRank(IntEnum):
    """The order in which queries get task slots if there are too few."""

    SERVING = 0  # the folds of live versions, and dead letters
    OTHER = 1
    CANDIDATE = 2
    PREVIOUS = 3


@dataclass(frozen=True)
class SlotClaim:
    """The task slots that a query needs; `order` sorts within a rank, ascending."""

    slots: int
    rank: SlotRank
    order: int = 0


def shuffle_partitions(stream: StreamSettings, partitions: int) -> int:
    """Return the number of shuffle partitions of a new query whose source has `partitions`.

    Without the setting, it is the same number on a cluster. On this machine, it is half the number of cores, at most the same number:
    each further task takes processor time even when it has nothing to fold, and each further pair of tasks sends messages of its own.
    """
    if stream.shuffle_partitions:
        return stream.shuffle_partitions
    if stream.master:
        return partitions
    return min(partitions, max(1, cores() // 2))


def query_slots(stream: StreamSettings, partitions: int) -> int:
    """Return the task slots of one version's query whose source has `partitions`.

    On this machine, where a slot is a thread, they suffice for a checkpoint that was written with other settings or on a machine with
    more cores: a query keeps its number of shuffle partitions.
    """
    shuffle = stream.shuffle_partitions or partitions
    return partitions + (shuffle if stream.master else max(shuffle, partitions))


def flow_slots(stream: StreamSettings, partitions: int, *, has_shuffle: bool) -> int:
    """Return the task slots of a flow in real time whose source has `partitions`."""
    return query_slots(stream, partitions) if has_shuffle else partitions


def most_queries(stream: StreamSettings, read_models: int) -> int:
    """Return how many versions can be folded concurrently: a live one of each read model, and the spare ones."""
    return read_models + stream.spare_queries


def queries_with_slots(claims: Mapping[str, SlotClaim], running: Collection[str], available: int) -> set[str]:
    """Return the names of the queries that get task slots, out of `available` slots.

    Running queries come first, then the others by rank and order. A query whose claim does not fit gets none.
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
