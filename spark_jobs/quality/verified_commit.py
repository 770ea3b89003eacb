"""Commits what a passed check has verified to the table of verified records, for the next incremental check."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit
from pyspark.sql.types import StructType

from include.declarations.read_model import KEY_COLUMN
from include.position import POSITION_COLUMNS, SOURCE_OFFSET, SOURCE_PARTITION
from include.quality.check import StoreName
from include.quality.verified_tag import VerifiedMark, VerifiedTag, verified_by_all
from spark_jobs.folding.event_rules import partition_of_key
from spark_jobs.quality.comparison import distinct_cuts
from spark_jobs.quality.expectations import CheckedRecords
from spark_jobs.quality.log_replay import Replay, below
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.stores.base import StoreReading
from spark_jobs.quality.target import Target
from spark_jobs.quality.verified.incremental_replay import IncrementalReplay
from spark_jobs.quality.verified.table import VerifiedTable, digest_of

# The stores that follow the log, which are checked again and again.
KEPT_STORES = (StoreName.LAKE, StoreName.NODES)
# Each append adds a file: afterwards, the table is written as a whole.
MAX_APPENDS = 50
# A full check keeps one row for each key, or two if lake and nodes are at different positions.
MAX_ROWS_PER_KEY = 3
# Columns beside those of states.
IS_BELOW, NTH = "record:is_below", "record:nth"


def commit_full(
    session: CheckSession, table: VerifiedTable, checked: CheckedRecords
) -> dict[str, VerifiedMark]:
    """Replace the verified records by those of a passed full check; returns how far each store is verified.

    Nothing is kept of a read model without a merge.
    """
    target, basis = checked.target, table.basis
    kept = [read for read in checked.readings if read.store.name in KEPT_STORES]
    if basis is None or not kept:
        return {}
    keys = _keys_of_log(kept, checked.replay)
    full = (checked.request.run_id, target.cut_at_s)
    marks = {name: _mark(target, read, keys[name], *full) for name, read in _by_name(kept).items()}
    rows = session.keep(_as_rows(_lowest(kept, checked.comparison), table.columns))
    tag = VerifiedTag(
        target.model.name,
        target.version.number,
        target.version.fold_revision,
        basis.fold,
        basis.topic_id,
        marks,
        digest_of(rows),
        0,
        checked.request.run_id,
    )
    table.overwrite(rows, tag)
    return marks


def commit_increment(
    session: CheckSession, table: VerifiedTable, checked: CheckedRecords, increment: IncrementalReplay
) -> dict[str, VerifiedMark]:
    """Add the records of a passed incremental check to the verified ones; returns how far each of its stores is verified."""
    verified, marks = increment.verified, {}
    old = verified.tag
    for name, read in _by_name(checked.readings).items():
        mark = verified.marks[name]
        keys = increment.required_keys(read.store.name, read.reading.replicas[0].cut)
        marks[name] = _mark(checked.target, read, keys, mark.full_run_id, mark.full_at_s)
    known = increment.rows.select("key", col("base_offset").alias(SOURCE_OFFSET.name))
    replayed = _as_rows(_lowest(checked.readings, checked.comparison), table.columns)
    rows = session.keep(
        replayed.join(known, ["key", SOURCE_OFFSET.name], "left_anti").select(*table.columns.names)
    )
    digest = digest_of(rows)
    if not digest.rows and all(
        marks[name].verified_up_to == old.stores[name].verified_up_to for name in marks
    ):
        return marks
    tag = replace(
        old,
        stores={**old.stores, **marks},
        digest=old.digest + digest,
        appends=old.appends + 1,
        run_id=checked.request.run_id,
        previous=old.chain,
    )
    total_keys = max(sum(mark.keys.values()) for mark in tag.stores.values())
    if tag.appends <= MAX_APPENDS and tag.digest.rows <= MAX_ROWS_PER_KEY * total_keys:
        table.append(rows.coalesce(1), tag, verified.transaction)
        return marks
    needed = session.keep(_needed(verified.rows.unionByName(rows), tag))
    table.overwrite(needed, replace(tag, digest=digest_of(needed), appends=0), verified.transaction)
    return marks


def _by_name(readings: Sequence[StoreReading]) -> dict[str, StoreReading]:
    return {str(read.store.name): read for read in readings}


def _mark(
    target: Target, read: StoreReading, keys: Mapping[int, int], full_run_id: str, full_at_s: float
) -> VerifiedMark:
    """Return the mark of a store, whose replicas have the same cut."""
    replicas = read.reading.replicas
    cut_at_s = target.cut_at_s - max(replica.lag_s for replica in replicas)
    return VerifiedMark(replicas[0].cut, cut_at_s, keys, full_run_id, full_at_s, read.reading.table_version)


def _keys_of_log(readings: Sequence[StoreReading], replay: Replay) -> dict[str, dict[int, int]]:
    """Return by store the number of keys with an event below its cut, by partition of the key."""
    cuts = distinct_cuts([replica for read in readings for replica in read.reading.replicas])
    partition = partition_of_key(col("key").cast("binary"), replay.partitions)
    counts = replay.keys.groupBy(partition.alias("key_partition")).agg(
        *(F.count(F.get("last", lit(replay.cuts.index(cut)))).alias(f"cut_{i}") for i, cut in enumerate(cuts))
    )
    rows = counts.collect()
    return {
        str(read.store.name): {
            row.key_partition: row[f"cut_{cuts.index(read.reading.replicas[0].cut)}"] for row in rows
        }
        for read in readings
    }


def _lowest(readings: Sequence[StoreReading], comparison: DataFrame) -> DataFrame:
    """Return key, record: the replay up to each store's lowest record of each key, which all of its replicas contain."""
    stored = [F.when(col("place").isin(read.replica_names), col("stored_offset")) for read in readings]
    lowest = F.array(*(F.min_by("record", offset) for offset in stored))
    by_key = comparison.groupBy("key").agg(F.array_distinct(F.array_compact(lowest)).alias("records"))
    return by_key.select("key", F.explode("records").alias("record"))


def _as_rows(records: DataFrame, columns: StructType) -> DataFrame:
    """Return records of a replay (`key`, `record`) as rows of the table."""
    position = set(POSITION_COLUMNS)
    fields = (
        col(f"record.{name}") if name in position else col(f"record.state.{name}").alias(name)
        for name in columns.names
        if name != KEY_COLUMN
    )
    return records.select(col("key").alias(KEY_COLUMN), *fields)


def _needed(rows: DataFrame, tag: VerifiedTag) -> DataFrame:
    """Return the rows without those that no check needs: every store has the newest one below all of their `verified_up_to`."""
    is_below = below(verified_by_all(tag.stores.values()), SOURCE_PARTITION.name, SOURCE_OFFSET.name)
    order = Window.partitionBy("key", IS_BELOW).orderBy(col(SOURCE_OFFSET.name).desc())
    numbered = rows.withColumn(IS_BELOW, is_below).withColumn(NTH, F.row_number().over(order))
    return numbered.where((col(NTH) == 1) | ~col(IS_BELOW)).select(*rows.columns)
