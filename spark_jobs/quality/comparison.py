"""Compares each stored record with a replay of the log: the fold of exactly the events at or below its position.

One pass over the events computes what each stored record must be, how far each key must have got, and which keys must exist.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit
from pyspark.sql.types import DoubleType, FloatType

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION
from include.position import POSITION_COLUMNS, SOURCE_PARTITION, Offsets
from include.quality.check import UncheckableError
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.fold_query import folded
from spark_jobs.folding.key_partition import partition_of_key
from spark_jobs.folding.lifetimes import HAS_ENDED, departures
from spark_jobs.folding.replay import IdsOf, replayed_events, with_needed_schema_ids
from spark_jobs.quality.stores.base import Sample, StoreReplica, Target, record_of
from spark_jobs.runtime.session import session_settings

STORED, REPLAYED = "stored", "replayed"
STORED_HAS_ENDED, KEY_HAS_ENDED = "stored_has_ended", "key_has_ended"
# Columns beside those of events and states.
MODEL_KEY, POSITIONS, POSITION, NTH = "record:model_key", "record:positions", "record:position", "record:nth"
LAST, COUNT, EVENTS = "record:last", "record:count", "record:events"
LOWEST_PARTITION, IS_SOURCE_KEY = "record:lowest_partition", "record:is_source_key"
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
        events ends the item, or its state at one of these positions cannot be written).
    records: `key`, `position`, `record`: the fold of the key's events at or below the position; `has_ended`: whether one of these ends
        the item, or the state cannot be written, so that no record may exist.
    cuts: those of `last` and `count`.
    """

    keys: DataFrame
    records: DataFrame
    events: int
    cuts: tuple[Offsets, ...]


def replay_fold(
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
    fold = partial(_grouped, target, positions, number, cuts, until, only)
    with session_settings(target.spark, DECODE_ONCE):
        grouped, events = with_needed_schema_ids(fold)
    may_lack, must_lack = departures(target.model.expires, target.settings.stream, grouped)
    groups = grouped.select(
        "key",
        *(col(name).alias(name.partition(":")[2]) for name in (POSITION, LAST, COUNT)),
        may_lack.alias(KEY_HAS_ENDED),
        must_lack.alias(HAS_ENDED),
        record_of(target, grouped).alias("record"),
    )
    by_cut = range(len(cuts))
    keys = groups.groupBy("key").agg(
        F.array(*(F.max(F.get("last", lit(i))) for i in by_cut)).alias("last"),
        F.array(*(F.sum(F.get("count", lit(i))) for i in by_cut)).alias("count"),
        F.max("record.source_partition").alias("partition"),
        F.max_by("record", F.coalesce(col("position"), lit(-1))).alias("newest"),
        F.bool_or(KEY_HAS_ENDED).alias(HAS_ENDED),
    )
    records = groups.where(col("position").isNotNull())
    return Replay(keys, records.select("key", "position", "record", HAS_ENDED), events, tuple(cuts))


def _grouped(
    target: Target,
    positions: DataFrame,
    number: int,
    cuts: Sequence[Offsets],
    until: Offsets,
    only: DataFrame | None,
    ids_of: IdsOf,
) -> tuple[DataFrame, int]:
    """Return the fold of the events of each key up to each of its positions, and the number of events."""
    model = target.model
    events = replayed_events(
        target.spark,
        target.settings,
        model,
        until,
        revision=target.version.fold_revision,
        ids_of=ids_of,
    )
    events = events.withColumn(MODEL_KEY, model.key().cast("string"))
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
    grouped = target.frames.keep(folded(model, target.version.fold_revision, groups, others))
    total = grouped.agg(F.sum(EVENTS).alias("events"), F.bool_or(_is_mixed()).alias("mixed")).first()
    if total is not None and total.mixed:
        raise _uncheckable(target, grouped, events)
    return grouped, int((total and total.events) or 0)


def keys_by_replica(target: Target, replicas: Sequence[StoreReplica], replay: Replay) -> DataFrame:
    """Return the keys that each replica must have: place (its name), key, partition, newest, required_offset, required_count, key_has_ended.

    One row for every key of the log that belongs to the replica, or with an event since the replica was verified; required_offset
    is null if all of its events are beyond the cut. A replica may lack a key that has ended, and must once it has its events.
    """
    rows = [
        (
            r.name,
            replay.cuts.index(r.cut),
            None if r.since is None else replay.cuts.index(r.since),
            r.key_partition,
        )
        for r in replicas
    ]
    columns = "place string, cut int, since int, key_partition int"
    frame = F.broadcast(target.spark.createDataFrame(rows, columns))
    everywhere = replay.keys.crossJoin(frame.where(col("key_partition").isNull()))
    found = everywhere
    if any(replica.key_partition is not None for replica in replicas):
        keyed = replay.keys.withColumn(
            "key_partition", partition_of_key(col("key").cast("binary"), len(target.cut))
        )
        partitioned = keyed.join(frame.where(col("key_partition").isNotNull()), "key_partition")
        found = everywhere.unionByName(partitioned.select(everywhere.columns))
    is_changed = F.get("count", col("cut")) > F.get("count", col("since"))
    return found.where(col("since").isNull() | is_changed).select(
        "place",
        "key",
        "partition",
        "newest",
        F.get("last", col("cut")).alias("required_offset"),
        F.get("count", col("cut")).alias("required_count"),
        col(HAS_ENDED).alias(KEY_HAS_ENDED),
    )


def compare(
    target: Target, replicas: Sequence[StoreReplica], stored: DataFrame, replay: Replay, sample: Sample
) -> DataFrame:
    """Return one row for each replica and key that is stored there or must be.

    Columns: place (the replica's name), key, partition, stored and replayed (structs of text by field; null if there is no
    such record), stored_offset, stored_count, required_offset and required_count (of the key's events below the replica's
    cut; null if there are none), record (the replayed one, typed), stored_has_ended (whether an event in the stored record ends the item),
    key_has_ended (whether any event does; a key that has ended and is not stored has no row), copy (1 for a key's first record, 2 and so on for further ones in the same replica).
    """
    required = sample.of(keys_by_replica(target, replicas, replay))
    known = required.where(col("required_offset").isNotNull())
    stored_rows = stored.select(
        "place",
        "key",
        F.struct("state", *POSITION_COLUMNS).alias("stored"),
        col("source_offset").alias("stored_offset"),
        F.row_number().over(Window.partitionBy("place", "key").orderBy("source_offset")).alias("copy"),
    )
    both = stored_rows.join(known, ["place", "key"], "full_outer").join(
        replay.records.select(
            "key",
            col("position").alias("stored_offset"),
            col("record").alias("replayed"),
            col(HAS_ENDED).alias(STORED_HAS_ENDED),
        ),
        ["key", "stored_offset"],
        "left",
    )
    both = both.where(col("stored").isNotNull() | ~col(KEY_HAS_ENDED))
    replayed = F.when(col("stored").isNull(), col("newest")).otherwise(col("replayed"))
    return both.select(
        "place",
        "key",
        F.coalesce("partition", col("stored.source_partition")).alias("partition"),
        _texts(target, col("stored")).alias(STORED),
        _texts(target, replayed).alias(REPLAYED),
        replayed.alias("record"),
        "stored_offset",
        "required_offset",
        "required_count",
        F.coalesce(STORED_HAS_ENDED, lit(False)).alias(STORED_HAS_ENDED),  # noqa: FBT003 - a column
        F.coalesce(KEY_HAS_ENDED, lit(False)).alias(KEY_HAS_ENDED),  # noqa: FBT003 - a column
        col("stored.event_count").alias("stored_count"),
        "copy",
    )


def positions_of(stored: DataFrame) -> DataFrame:
    """Return the positions up to which each stored key's events must be folded."""
    return stored.groupBy("key").agg(F.sort_array(F.collect_set("source_offset")).alias("positions"))


def distinct_cuts(replicas: Sequence[StoreReplica]) -> list[Offsets]:
    """Return the distinct cuts of these replicas."""
    found: list[Offsets] = []
    for replica in replicas:
        if replica.cut not in found:
            found.append(replica.cut)
    return found


def _is_mixed() -> Column:
    """Return whether the read model's key groups events of several partitions.

    False if it is the record key itself, whose events a producer has written to several partitions: the check reports that
    as a fault.
    """
    return ~col(IS_SOURCE_KEY) & (col(LOWEST_PARTITION) != col(SOURCE_PARTITION.name))


def _uncheckable(target: Target, grouped: DataFrame, events: DataFrame) -> UncheckableError:
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
        target.model.name,
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


def compared_fields(target: Target) -> tuple[str, ...]:
    """Return the fields of a state record in order."""
    return (*(field.name for field in target.state_type), *POSITION_COLUMNS)


def _texts(target: Target, record: Column) -> Column:
    """Return a record with each field as text; null becomes the text `null`, because null equals nothing."""
    names = {f.name: record["state"][f.name] for f in target.state_type}
    names |= {name: record[name] for name in POSITION_COLUMNS}
    floats = {f.name for f in target.state_type if isinstance(f.dataType, FloatType | DoubleType)}
    # -0.0 plus 0.0 is 0.0: which of two equal zeros a fold keeps depends on their order. NaN stays NaN, whose texts are equal.
    texts = (
        F.coalesce((value + lit(0.0) if name in floats else value).cast("string"), lit("null")).alias(name)
        for name, value in names.items()
    )
    return F.when(record.isNotNull(), F.struct(*texts))
