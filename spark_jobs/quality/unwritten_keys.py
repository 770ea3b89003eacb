"""Keys that a store may lack, because their state cannot be written.

The state of a key can be one that its record cannot have, and another event can change that. Whether a store may lack the key depends on
how far the store has read: the log is replayed once more for the keys that a replica lacks, up to where it must have read them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import array, col, lit

from include.quality.check import NAMED_UNWRITTEN
from spark_jobs.folding.written_states import FAILED
from spark_jobs.quality.log_replay import ALL_EVENTS, Replay
from spark_jobs.quality.stores.base import Target


@dataclass(frozen=True)
class UnwrittenKeys:
    """Keys without a record in a store: their number, and the first ones with what of their state fails."""

    number: int = 0
    named: tuple[str, ...] = ()


def may_lack(
    target: Target, comparison: DataFrame, replay: Callable[[DataFrame, int, DataFrame], Replay]
) -> DataFrame | None:
    """Return place, key and FAILED of the missing records of a comparison that a replica may lack; None if there are none.

    A store may have read more than it must: it may also lack a key whose state cannot be written after all events.

    Args:
        target: of the check.
        comparison: see `comparison.compare`.
        replay: returns the replay for positions, at most as many as given, of the keys in a third frame (see `replay_fold`).
    """
    is_missing = col("stored").isNull() & col("required_offset").isNotNull()
    missing = target.frames.keep(comparison.where(is_missing).select("place", "key", "required_offset"))
    number = missing.count()
    if not number:
        return None
    of_key = F.array_union(F.collect_set("required_offset"), array(lit(ALL_EVENTS)))
    positions = missing.groupBy("key").agg(F.sort_array(of_key).alias("positions"))
    failed = replay(positions, 2 * number, missing).records.where(col(FAILED).isNotNull())
    is_reached = (col("position") == col("required_offset")) | (col("position") == ALL_EVENTS)
    found = missing.join(failed.select("key", "position", FAILED), "key").where(is_reached)
    return target.frames.keep(found.groupBy("place", "key").agg(F.first(FAILED).alias(FAILED)))


def unwritten_keys(replay: Replay) -> UnwrittenKeys:
    """Return the keys of a replay whose state cannot be written, where a store must have read them or after all events."""
    if not replay.can_fail:
        return UnwrittenKeys()
    found = replay.keys.where(col(FAILED).isNotNull()).select("key", FAILED)
    if replay.unwritten is not None:
        found = found.unionByName(replay.unwritten.select("key", FAILED))
    found = found.groupBy("key").agg(F.first(FAILED).alias(FAILED))
    number = found.count()
    named = found.orderBy("key").limit(NAMED_UNWRITTEN).collect() if number else []
    return UnwrittenKeys(number, tuple(f"{row['key']} ({row[FAILED]})" for row in named))
