"""Compares each stored record with a replay of the log: the fold of exactly the events at or below its position.

One pass over the events computes what each stored record must be, how far each key must have got, and which keys must exist.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit
from pyspark.sql.types import DoubleType, FloatType

from include.position import POSITION_COLUMNS, Offsets
from spark_jobs.folding.key_partition import partition_of_key
from spark_jobs.folding.lifetimes import HAS_ENDED
from spark_jobs.folding.written_states import FAILED
from spark_jobs.quality.log_replay import Replay
from spark_jobs.quality.stores.base import FrameSample, StoreReplica, Target

STORED, REPLAYED = "stored", "replayed"
STORED_HAS_ENDED, KEY_MAY_BE_MISSING = "stored_has_ended", "key_may_be_missing"
UNWRITTEN = "record:unwritten"


def keys_by_replica(target: Target, replicas: Sequence[StoreReplica], replay: Replay) -> DataFrame:
    """Return the keys that each replica must have: place (its name), key, partition, newest, required_offset, required_count, key_may_be_missing.

    One row for every key of the log that belongs to the replica, or with an event since the replica was verified; required_offset
    is null if all of its events are beyond the cut. A replica may lack a key that has ended, and must once it has its events; and one
    whose state cannot be written.
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
    may_lack = col(HAS_ENDED)
    if replay.can_fail:
        may_lack |= col(FAILED).isNotNull()
    if replay.unwritten is not None:
        unwritten = replay.unwritten.select("place", "key", lit(True).alias(UNWRITTEN))  # noqa: FBT003 - a column
        found = found.join(F.broadcast(unwritten), ["place", "key"], "left")
        may_lack |= col(UNWRITTEN).isNotNull()
    return found.where(col("since").isNull() | is_changed).select(
        "place",
        "key",
        "partition",
        "newest",
        F.get("last", col("cut")).alias("required_offset"),
        F.get("count", col("cut")).alias("required_count"),
        may_lack.alias(KEY_MAY_BE_MISSING),
    )


def compare(
    target: Target, replicas: Sequence[StoreReplica], stored: DataFrame, replay: Replay, sample: FrameSample
) -> DataFrame:
    """Return one row for each replica and key that is stored there or must be.

    Columns: place (the replica's name), key, partition, stored and replayed (structs of text by field; null if there is no
    such record), stored_offset, stored_count, required_offset and required_count (of the key's events below the replica's
    cut; null if there are none), record (the replayed one, typed), stored_has_ended (whether an event in the stored record ends the item),
    key_may_be_missing (whether any event does, or the state cannot be written; such a key has no row unless it is stored), copy (1 for a
    key's first record, 2 and so on for further ones in the same replica).
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
    both = both.where(col("stored").isNotNull() | ~col(KEY_MAY_BE_MISSING))
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
        F.coalesce(KEY_MAY_BE_MISSING, lit(False)).alias(KEY_MAY_BE_MISSING),  # noqa: FBT003 - a column
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
