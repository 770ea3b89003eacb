"""Compares each stored record with a replay of the log: the fold of exactly the events at or below its position.

One pass over the events computes what each stored record must be, how far each key must have got, and which keys must exist.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit
from pyspark.sql.types import DoubleType, FloatType

from include.position import POSITION_COLUMNS, Offsets
from include.replay.key_expectations import REPLAYED, STORED, STORED_HAS_ENDED
from spark_jobs.folding.event_rules import partition_of_key
from spark_jobs.folding.lifetimes import HAS_ENDED
from spark_jobs.folding.written_states import FAILED
from spark_jobs.quality.log_replay import ALL_EVENTS, Replay, replay_fold
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.stores.base import FrameSample, StoreReading, StoreReplica
from spark_jobs.quality.target import RecordTypes, Target
from spark_jobs.quality.verified.incremental_replay import IncrementalReplay

LOG = logging.getLogger("foldlake.quality")
POLL_S = 0.5
KEY_MAY_BE_MISSING = "key_may_be_missing"
UNWRITTEN = "record:unwritten"


def keys_by_replica(replicas: Sequence[StoreReplica], replay: Replay) -> DataFrame:
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
    frame = F.broadcast(replay.keys.sparkSession.createDataFrame(rows, columns))
    everywhere = replay.keys.crossJoin(frame.where(col("key_partition").isNull()))
    found = everywhere
    if any(replica.key_partition is not None for replica in replicas):
        keyed = replay.keys.withColumn(
            "key_partition", partition_of_key(col("key").cast("binary"), replay.partitions)
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
    types: RecordTypes,
    replicas: Sequence[StoreReplica],
    stored: DataFrame,
    replay: Replay,
    sample: FrameSample,
) -> DataFrame:
    """Return one row for each replica and key that is stored there or must be.

    Columns: place (the replica's name), key, partition, stored and replayed (structs of text by field; null if there is no
    such record), stored_offset, stored_count, required_offset and required_count (of the key's events below the replica's
    cut; null if there are none), record (the replayed one, typed), stored_has_ended (whether an event in the stored record ends the item),
    key_may_be_missing (whether any event does, or the state cannot be written; such a key has no row unless it is stored), copy (1 for a
    key's first record, 2 and so on for further ones in the same replica).
    """
    required = sample.of(keys_by_replica(replicas, replay))
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
        _texts(types, col("stored")).alias(STORED),
        _texts(types, replayed).alias(REPLAYED),
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


def _texts(types: RecordTypes, record: Column) -> Column:
    """Return a record with each field as text; null becomes the text `null`, because null equals nothing."""
    names = {f.name: record["state"][f.name] for f in types.state}
    names |= {name: record[name] for name in POSITION_COLUMNS}
    floats = {f.name for f in types.state if isinstance(f.dataType, FloatType | DoubleType)}
    # -0.0 plus 0.0 is 0.0: which of two equal zeros a fold keeps depends on their order. NaN stays NaN, whose texts are equal.
    texts = (
        F.coalesce((value + lit(0.0) if name in floats else value).cast("string"), lit("null")).alias(name)
        for name, value in names.items()
    )
    return F.when(record.isNotNull(), F.struct(*texts))


class LogComparison:
    """Compares all stores with the log, and the keys that were behind once more."""

    def __init__(
        self,
        session: CheckSession,
        target: Target,
        readings: Sequence[StoreReading],
        sample: FrameSample,
        increment: IncrementalReplay | None,
    ) -> None:
        self._session = session
        self._target = target
        self._increment = increment
        self._readings = readings
        self._sample = sample
        self._replicas = [replica for read in readings for replica in read.reading.replicas]

    def run(self) -> tuple[DataFrame, Replay]:
        """Return the comparison (see `comparison.compare`) and its replay."""
        records = _union([read.reading.records for read in self._readings])
        first, replay = self._compare(records)
        late = self._late(first)
        count = late.count()
        if count == 0:
            return first, replay
        LOG.info("%s records are behind the cut: reading them again", f"{count:,}")
        second, again = self._compare(self._reread(late, count), only=late)
        keys = late.select("place", "key")
        unchanged = first.join(keys, ["place", "key"], "left_anti")
        found = unchanged.unionByName(second.join(keys, ["place", "key"], "left_semi"))
        return found, replay.with_unwritten(again.unwritten)

    def _compare(self, records: DataFrame, only: DataFrame | None = None) -> tuple[DataFrame, Replay]:
        session, started_s = self._session, time.monotonic()
        # These ends are beyond every stored position, because the stores were read before.
        until = self._target.ends()
        cuts = distinct_cuts(self._replicas)

        def replayed(positions: DataFrame, number: int, only: DataFrame | None) -> Replay:
            if self._increment is not None:
                return self._increment.replay(positions, cuts, until, only)
            total = self._target.model.starts.events_until(until)
            with session.reading("replaying the log", "events", total):
                return replay_fold(session, self._target, positions, number, cuts, until, only)

        number = sum(read.count for read in self._readings)
        replay = replayed(positions_of(records), number, only)
        LOG.info("replayed %s events in %.1f s", f"{replay.events:,}", time.monotonic() - started_s)
        found = session.keep(compare(self._target.types, self._replicas, records, replay, self._sample))
        if replay.can_fail and (unwritten := self._may_lack(found, replayed)) is not None:
            found = found.join(unwritten.select("place", "key"), ["place", "key"], "left_anti")
            return session.keep(found), replay.with_unwritten(unwritten)
        return found, replay

    def _may_lack(
        self, comparison: DataFrame, replay: Callable[[DataFrame, int, DataFrame], Replay]
    ) -> DataFrame | None:
        """Return place, key and FAILED of the missing records that a replica may lack; None if there are none.

        The state of a key can be one that its record cannot have, and another event can change that. Whether a store may lack the key
        depends on how far it has read: the log is replayed once more for the keys that a replica lacks, up to where it must have read
        them. It may have read more than it must, and also lack a key whose state cannot be written after all events.

        replay: returns the replay for positions, at most as many as given, of the keys in a third frame (see `replay_fold`).
        """
        is_missing = col("stored").isNull() & col("required_offset").isNotNull()
        missing = self._session.keep(comparison.where(is_missing).select("place", "key", "required_offset"))
        number = missing.count()
        if not number:
            return None
        of_key = F.array_union(F.collect_set("required_offset"), F.array(lit(ALL_EVENTS)))
        positions = missing.groupBy("key").agg(F.sort_array(of_key).alias("positions"))
        failed = replay(positions, 2 * number, missing).records.where(col(FAILED).isNotNull())
        is_reached = (col("position") == col("required_offset")) | (col("position") == ALL_EVENTS)
        found = missing.join(failed.select("key", "position", FAILED), "key").where(is_reached)
        return self._session.keep(found.groupBy("place", "key").agg(F.first(FAILED).alias(FAILED)))

    @property
    def _live(self) -> list[StoreReading]:
        return [read for read in self._readings if read.store.may_catch_up]

    def _late(self, comparison: DataFrame) -> DataFrame:
        """Return place, key, required_offset, key_may_be_missing of the records that are behind the cut and may catch up."""
        replicas = [name for read in self._live for name in read.replica_names]
        behind = col("stored").isNull() | (col("stored_offset") < col("required_offset"))
        late = comparison.where(
            col("place").isin(replicas) & behind & col("required_offset").isNotNull()
        ).select("place", "key", "required_offset", KEY_MAY_BE_MISSING)
        return self._session.keep(late)

    def _reread(self, late: DataFrame, count: int) -> DataFrame:
        """Return the records of these keys once all of them have caught up, or when the wait ends."""
        deadline_s = time.monotonic() + self._session.settings.quality.wait_s
        while True:
            fresh = self._session.keep(_union([read.store.reread(late) for read in self._live]))
            has_left = col("source_offset").isNull() & col(KEY_MAY_BE_MISSING)
            reached = late.join(fresh, ["place", "key"], "left").where(
                (col("source_offset") >= col("required_offset")) | has_left
            )
            if reached.count() == count or time.monotonic() > deadline_s:
                return fresh
            fresh.unpersist()
            time.sleep(POLL_S)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
