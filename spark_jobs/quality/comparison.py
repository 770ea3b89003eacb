"""Stored records beside what the log says of the same keys: exactly the events at or below each stored position, folded again.

One pass over the events answers three questions: what each stored record must be, up to where each key must have got,
and which keys there must be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.position import POSITION_COLUMNS, Offsets
from include.quality.check import UncheckableError
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.fold_query import state_columns
from spark_jobs.folding.key_partition import partition_of_key
from spark_jobs.folding.replay import replayed_events
from spark_jobs.lake.lake_table import session_settings
from spark_jobs.quality.stores.base import Sample, StoreReplica, Target

STORED, REPLAYED = "stored", "replayed"


@dataclass(frozen=True)
class Replay:
    """The events of the log, folded for a set of stored positions.

    keys: one row a key of the log: `key`, `last` and `count` (arrays by cut: the offset of its newest event below the
        cut, null where there is none, and how many there are), `partition` of its events, `newest` (its state record as
        of the highest position asked for, or of all its events where none was).
    records: `key`, `position`, `record`: the fold of the key's events at or below the position.
    """

    keys: DataFrame
    records: DataFrame
    events: int


def replay_fold(
    target: Target,
    positions: DataFrame,
    cuts: Sequence[Offsets],
    until: Offsets,
    only: DataFrame | None = None,
) -> Replay:
    """Fold the log again for every (key, position) in `positions`, all of it or `only` the keys of a frame.

    `positions`: one row a key with `positions`, an array of source offsets in ascending order.
    Raises UncheckableError when a key that is not the source's has events in several source partitions.
    """
    spark, model = target.spark, target.model
    with session_settings(spark, DECODE_ONCE):
        events = replayed_events(spark, target.settings, model, until)
        events = events.withColumn("model_key", model.key().cast("string"))
        if only is not None:
            keys = F.broadcast(only.select(col("key").alias("model_key")).distinct())
            events = events.join(keys, "model_key", "left_semi")
        asked = positions.select(col("key").alias("model_key"), "positions")
        reached = F.filter(col("positions"), lambda position: position >= col("offset"))
        # An event counts for each position at or above it; once, without a position, where there is none.
        each = events.join(asked, "model_key", "left").select(
            "*", F.posexplode_outer(reached).alias("nth", "position")
        )
        is_first = col("nth").isNull() | (col("nth") == 0)
        grouped = each.groupBy(col("model_key").alias("key"), "position").agg(
            *state_columns(model, target.version.fold_revision),
            F.array(*(F.max(F.when(_below(cut), col("offset"))) for cut in cuts)).alias("last"),
            F.array(*(F.count_if(is_first & _below(cut)) for cut in cuts)).alias("count"),
            F.count_if(is_first).alias("events"),
            F.min("partition").alias("other_partition"),
            F.bool_and(F.decode("key", "UTF-8") == col("model_key")).alias("is_source_key"),
        )
        target.kept.keep(grouped)
        total = grouped.agg(F.sum("events").alias("events"), F.min(_in_several()).alias("mixed")).first()
    if total is not None and total.mixed is not None:
        key, *partitions = total.mixed
        raise UncheckableError.of_several_partitions(model.name, key, partitions)
    record = F.struct(_state(target).alias("state"), *_position(target)).alias("record")
    groups = grouped.select("key", "position", "last", "count", record)
    by_cut = range(len(cuts))
    keys = groups.groupBy("key").agg(
        F.array(*(F.max(F.get("last", lit(i))) for i in by_cut)).alias("last"),
        F.array(*(F.sum(F.get("count", lit(i))) for i in by_cut)).alias("count"),
        F.max("record.source_partition").alias("partition"),
        F.max_by("record", F.coalesce(col("position"), lit(-1))).alias("newest"),
    )
    records = groups.where(col("position").isNotNull())
    return Replay(keys, records.select("key", "position", "record"), int((total and total.events) or 0))


def keys_by_place(target: Target, places: Sequence[StoreReplica], replay: Replay) -> DataFrame:
    """Return what each place must hold: place, key, partition, newest, required_offset, required_count.

    A row for every key of the log that belongs there; required_offset is null where its events lie beyond the cut.
    """
    cuts = distinct_cuts(places)
    rows = [(place.name, cuts.index(place.cut), place.key_partition) for place in places]
    frame = F.broadcast(target.spark.createDataFrame(rows, "place string, cut int, key_partition int"))
    everywhere = replay.keys.crossJoin(frame.where(col("key_partition").isNull()))
    found = everywhere
    if any(place.key_partition is not None for place in places):
        keyed = replay.keys.withColumn("key_partition", partition_of_key("key", len(target.cut)))
        there = keyed.join(frame.where(col("key_partition").isNotNull()), "key_partition")
        found = everywhere.unionByName(there.select(everywhere.columns))
    return found.select(
        "place",
        "key",
        "partition",
        "newest",
        F.get("last", col("cut")).alias("required_offset"),
        F.get("count", col("cut")).alias("required_count"),
    )


def compare(
    target: Target, places: Sequence[StoreReplica], stored: DataFrame, replay: Replay, sample: Sample
) -> DataFrame:
    """Return one row for each place and key that is stored there or must be.

    Columns: place, key, partition, stored and replayed (structs of text by field; null where there is no such record),
    stored_offset, required_offset and required_count (of the key's newest event below the place's cut; null: none),
    copy (1 for a key's record, 2 and so on where it has further ones in the same place).
    """
    required = sample.of(keys_by_place(target, places, replay))
    known = required.where(col("required_offset").isNotNull())
    stored_rows = stored.select(
        "place",
        "key",
        F.struct("state", *POSITION_COLUMNS).alias("stored"),
        col("source_offset").alias("stored_offset"),
        F.row_number().over(Window.partitionBy("place", "key").orderBy("source_offset")).alias("copy"),
    )
    both = stored_rows.join(known, ["place", "key"], "full_outer").join(
        replay.records.select("key", col("position").alias("stored_offset"), col("record").alias("replayed")),
        ["key", "stored_offset"],
        "left",
    )
    replayed = F.when(col("stored").isNull(), col("newest")).otherwise(col("replayed"))
    return both.select(
        "place",
        "key",
        F.coalesce("partition", col("stored.source_partition")).alias("partition"),
        _texts(target, col("stored")).alias(STORED),
        _texts(target, replayed).alias(REPLAYED),
        "stored_offset",
        "required_offset",
        "required_count",
        col("stored.event_count").alias("stored_count"),
        "copy",
    )


def positions_of(stored: DataFrame) -> DataFrame:
    """Return the positions at which each stored key's events are to be folded."""
    return stored.groupBy("key").agg(F.sort_array(F.collect_set("source_offset")).alias("positions"))


def distinct_cuts(places: Sequence[StoreReplica]) -> list[Offsets]:
    """Return the different cuts of these places."""
    found: list[Offsets] = []
    for place in places:
        if place.cut not in found:
            found.append(place.cut)
    return found


def _in_several() -> Column:
    """Return key and partitions where a group's events come from more than one partition as the read model has it, else null.

    Not where a producer put an event of the source's own key elsewhere: the check goes on.
    """
    both = F.struct("key", "other_partition", "source_partition")
    return F.when(~col("is_source_key") & (col("other_partition") != col("source_partition")), both)


def _below(cut: Offsets) -> Column:
    inside = lit(False)  # noqa: FBT003 - a literal column
    for partition, offset in cut.items():
        inside = inside | ((col("partition") == partition) & (col("offset") < offset))
    return inside


def _state(target: Target) -> Column:
    fields = (col(f.name).cast(f.dataType).alias(f.name) for f in target.state_type)
    return F.struct(*fields)


def _position(target: Target) -> list[Column]:
    return [col(name).cast(target.position_type[name]).alias(name) for name in POSITION_COLUMNS]


def compared_fields(target: Target) -> tuple[str, ...]:
    """Return the fields of a state record, in their order."""
    return (*(field.name for field in target.state_type), *POSITION_COLUMNS)


def _texts(target: Target, record: Column) -> Column:
    """Return a record as text, field by field: null would equal nothing, so a null is a word."""
    names = {f.name: record["state"][f.name] for f in target.state_type}
    names |= {name: record[name] for name in POSITION_COLUMNS}
    texts = (F.coalesce(value.cast("string"), lit("null")).alias(name) for name, value in names.items())
    return F.when(record.isNotNull(), F.struct(*texts))
