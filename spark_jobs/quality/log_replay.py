"""Replays the log: folds the events of each key up to each position at which a store has its record."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION
from include.position import SOURCE_PARTITION, Offsets
from include.quality.check import UncheckableError
from spark_jobs.folding.fold_query import folded
from spark_jobs.folding.lifetimes import HAS_ENDED, absences
from spark_jobs.folding.written_states import FAILED, has_failed
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import MODEL_KEY
from spark_jobs.quality.target import Target

# Columns beside those of events and states.
POSITIONS, POSITION, NTH = "record:positions", "record:position", "record:nth"
LAST, COUNT, EVENTS = "record:last", "record:count", "record:events"
LOWEST_PARTITION, IS_SOURCE_KEY = "record:lowest_partition", "record:is_source_key"
MAY_LACK = "record:may_lack"
# The position of a store that has read every event: above every offset.
ALL_EVENTS = 2**63 - 1
# Number of keys with events in several partitions that the error names.
NAMED_KEYS = 5
# Up to this number, every task gets all requested positions (some 100 bytes each): otherwise all events would be shuffled and sorted.
POSITIONS_IN_MEMORY = 500_000


@dataclass(frozen=True)
class Replay:
    """The events of the log, folded for a set of stored positions.

    keys: one row per key of the log: `key`, `last` and `count` (arrays by cut: the offset of the key's newest event below
        the cut, null if there is none, and the number of such events), `partition` of its events, `newest` (its state
        record as of the highest requested position, or of all its events if none was requested), `has_ended` (whether any of its
        events ends the item), and, if states can fail, FAILED (what of the state of all events fails, if no position was requested).
    records: `key`, `position`, `record`: the fold of the key's events at or below the position; `has_ended`: whether one of these ends
        the item, or the state cannot be written, so that no record may exist.
    partitions: the number of partitions of the source.
    cuts: those of `last` and `count`.
    can_fail: whether there are states that cannot be written. `records` then has FAILED, too.
    unwritten: `place` and `key` of the records that a replica may lack for that reason, and FAILED; None if there are none.
    """

    keys: DataFrame
    records: DataFrame
    events: int
    partitions: int
    cuts: tuple[Offsets, ...]
    can_fail: bool = False
    unwritten: DataFrame | None = None

    def with_unwritten(self, unwritten: DataFrame | None) -> Self:
        """Return the replay with further records that a replica may lack."""
        if unwritten is None:
            return self
        known = unwritten if self.unwritten is None else self.unwritten.unionByName(unwritten)
        return replace(self, unwritten=known)


def replay_fold(
    session: CheckSession,
    target: Target,
    positions: DataFrame,
    number: int,
    cuts: Sequence[Offsets],
    until: Offsets,
    only: DataFrame | None = None,
) -> Replay:
    """Fold the log for every (key, position) in `positions`: for all keys of the log, or for those in `only`.

    `positions`: one row per key with `positions`, an array of source offsets in ascending order.
    `number`: at least as many as there are positions.
    Raises UncheckableError if a key of the read model has events in several source partitions.
    """
    fold = partial(_grouped, session, target, positions, number, cuts, only)
    grouped, events = session.log.read(fold, until)
    failure = [FAILED] if FAILED in grouped.columns else []
    may_lack, must_lack = absences(target.model.expires, session.settings.stream, grouped)
    groups = grouped.select(
        "key",
        *(col(name).alias(name.partition(":")[2]) for name in (POSITION, LAST, COUNT)),
        may_lack.alias(MAY_LACK),
        (must_lack | has_failed(grouped)).alias(HAS_ENDED),
        target.types.record_of(grouped).alias("record"),
        *failure,
    )
    by_cut = range(len(cuts))
    keys = groups.groupBy("key").agg(
        F.array(*(F.max(F.get("last", lit(i))) for i in by_cut)).alias("last"),
        F.array(*(F.sum(F.get("count", lit(i))) for i in by_cut)).alias("count"),
        F.max("record.source_partition").alias("partition"),
        F.max_by("record", F.coalesce(col("position"), lit(-1))).alias("newest"),
        F.bool_or(MAY_LACK).alias(HAS_ENDED),
        *(F.when(F.max("position").isNull(), F.max(name)).alias(name) for name in failure),
    )
    records = groups.where(col("position").isNotNull()).select(
        "key", "position", "record", HAS_ENDED, *failure
    )
    return Replay(keys, records, events, len(until), tuple(cuts), can_fail=bool(failure))


def _grouped(
    session: CheckSession,
    target: Target,
    positions: DataFrame,
    number: int,
    cuts: Sequence[Offsets],
    only: DataFrame | None,
    events: DataFrame,
) -> tuple[DataFrame, int]:
    """Return the fold of the events of each key up to each of its positions, and the number of events."""
    if only is not None:
        keys = F.broadcast(only.select(col("key").alias(MODEL_KEY)).distinct())
        events = events.join(keys, MODEL_KEY, "left_semi")
    wanted = positions.select(col("key").alias(MODEL_KEY), col("positions").alias(POSITIONS))
    if number <= POSITIONS_IN_MEMORY:
        wanted = F.broadcast(wanted)
    reached = F.filter(col(POSITIONS), lambda position: position >= col(OFFSET))
    # An event counts for each position at or above it, or once without a position if there is none.
    each = events.join(wanted, MODEL_KEY, "left").select(
        "*", F.posexplode_outer(reached).alias(NTH, POSITION)
    )
    is_first = col(NTH).isNull() | (col(NTH) == 0)
    others = (
        F.array(*(F.max(F.when(below(cut), col(OFFSET))) for cut in cuts)).alias(LAST),
        F.array(*(F.count_if(is_first & below(cut)) for cut in cuts)).alias(COUNT),
        F.count_if(is_first).alias(EVENTS),
        F.min(PARTITION).alias(LOWEST_PARTITION),
        F.bool_and(F.decode(KEY, "UTF-8") == col(MODEL_KEY)).alias(IS_SOURCE_KEY),
    )
    groups = each.groupBy(col(MODEL_KEY).alias("key"), POSITION)
    grouped = session.keep(folded(target.model, target.version.fold_revision, groups, others))
    total = grouped.agg(F.sum(EVENTS).alias("events"), F.bool_or(_is_mixed()).alias("mixed")).first()
    if total is not None and total.mixed:
        raise _uncheckable(target.model.name, grouped, events)
    return grouped, int((total and total.events) or 0)


def _is_mixed() -> Column:
    """Return whether the read model's key groups events of several partitions.

    False if it is the record key itself, whose events a producer has written to several partitions: the check reports that
    as a fault.
    """
    return ~col(IS_SOURCE_KEY) & (col(LOWEST_PARTITION) != col(SOURCE_PARTITION.name))


def _uncheckable(read_model: str, grouped: DataFrame, events: DataFrame) -> UncheckableError:
    """Return the error that names keys with events in several partitions; reads the log again for the named ones."""
    mixed = grouped.where(_is_mixed()).select("key").distinct()
    named = mixed.orderBy("key").limit(NAMED_KEYS).withColumnRenamed("key", MODEL_KEY)
    partitions = (
        events.join(F.broadcast(named), MODEL_KEY, "left_semi")
        .groupBy(MODEL_KEY)
        .agg(F.sort_array(F.collect_set(PARTITION)).alias("partitions"))
        .orderBy(MODEL_KEY)
        .collect()
    )
    return UncheckableError.of_several_partitions(
        read_model,
        {row[MODEL_KEY]: row.partitions for row in partitions},
        mixed.count(),
        grouped.select("key").distinct().count(),
    )


def below(cut: Offsets, partition: str = PARTITION, offset: str = OFFSET) -> Column:
    """Return whether the event, or the record, at these columns is below the cut."""
    inside = lit(False)  # noqa: FBT003 - a literal column
    for number, end in cut.items():
        inside = inside | ((col(partition) == number) & (col(offset) < end))
    return inside
