"""Folds the events of each key up to each position at which a store has its record."""

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION
from include.position import SOURCE_PARTITION, Offsets
from include.quality.check import UncheckableError
from include.replay.check.comparison import ALL_EVENTS, below
from spark_jobs.folding.fold_query import folded
from spark_jobs.folding.lifetimes import HAS_ENDED
from spark_jobs.folding.written_states import FAILED
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import MODEL_KEY
from spark_jobs.quality.target import Target

# Columns beside those of events and states.
POSITIONS, POSITION, NTH = "record:positions", "record:position", "record:nth"
LAST, COUNT, EVENTS = "record:last", "record:count", "record:events"
LOWEST_PARTITION, IS_SOURCE_KEY = "record:lowest_partition", "record:is_source_key"
# Number of keys with events in several partitions that the error names.
NAMED_KEYS = 5
# Up to this number, every task gets all requested positions (some 100 bytes each): otherwise all events would be shuffled and sorted.
POSITIONS_IN_MEMORY = 500_000


def fold_log(
    session: CheckSession,
    target: Target,
    positions: DataFrame,
    number: int,
    cuts: Sequence[Offsets],
    until: Offsets,
    only: DataFrame | None = None,
) -> tuple[DataFrame, int]:
    """Fold the log for every key and position: for all keys of the log, or for those in `only`. Return the result and the number of events.

    positions: one row per key with `positions`, an array of source offsets in ascending order. A key without positions is folded for
    ALL_EVENTS. number: at least as many as there are positions.

    The result has a row for each key and position, and one with a null position for the events beyond all positions of a key: `record` (as
    `RecordTypes.record_of` returns it), `has_ended`, `item_time`, `failed` (what of the state cannot be written, if one can fail), and of the events that
    no lower position of the key has: last_<i> and count_<i> (see `log_keys`), the partitions, and is_source_key.

    Raises UncheckableError if a key of the read model has events in several source partitions.
    """
    fold = partial(_grouped, session, target, positions, number, cuts, only)
    grouped, events = session.log.read(fold, until)
    expires = target.model.expires
    item_time = lit(None).cast("long") if expires is None else F.unix_micros(expires.field)
    failed = [col(FAILED).alias("failed")] if FAILED in grouped.columns else []
    numbers = (
        col(f"{name}:{i}").alias(f"{name.partition(':')[2]}_{i}")
        for i in range(len(cuts))
        for name in (LAST, COUNT)
    )
    found = grouped.select(
        "key",
        col(POSITION).alias("position"),
        target.types.record_of(grouped).alias("record"),
        col(HAS_ENDED).alias("has_ended"),
        item_time.alias("item_time"),
        col(LOWEST_PARTITION).alias("lowest_partition"),
        col(SOURCE_PARTITION.name).alias("partition"),
        col(IS_SOURCE_KEY).alias("is_source_key"),
        *numbers,
        *failed,
    )
    return found, events


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
    of_key = F.coalesce(POSITIONS, F.array(lit(ALL_EVENTS)))
    reached = F.filter(of_key, lambda position: position >= col(OFFSET))
    # An event counts for each position at or above it, or once without a position if there is none.
    each = events.join(wanted, MODEL_KEY, "left").select(
        "*", F.posexplode_outer(reached).alias(NTH, POSITION)
    )
    is_first = col(NTH).isNull() | (col(NTH) == 0)
    others = (
        *(F.max(F.when(is_below(cut), col(OFFSET))).alias(f"{LAST}:{i}") for i, cut in enumerate(cuts)),
        *(F.count_if(is_first & is_below(cut)).alias(f"{COUNT}:{i}") for i, cut in enumerate(cuts)),
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


def is_below(cut: Offsets) -> Column:
    """Return whether an event is below a cut."""
    return F.expr(below(cut).replace('"', "`"))


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
