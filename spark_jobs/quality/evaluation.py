"""Turns the comparison into results: evaluates the expectations, lists the failing keys and describes the findings."""

from collections.abc import Sequence

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col
from pyspark.sql.types import ArrayType, StructType

from include.quality.check import LISTED_KEYS, NAMED_UNWRITTEN, ExpectationResult, FailingKey
from include.replay.rules import Expectation
from include.replay.validation import validate
from spark_jobs.folding.written_states import FAILED
from spark_jobs.quality.expectations import CheckedRecords, store_results
from spark_jobs.quality.log_replay import Replay
from spark_jobs.quality.stores.base import StoreReading

# Great Expectations evaluates so few rows in less time without Spark.
FEW_ROWS = 20_000


def quoted(name: str) -> str:
    """Return a name in Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def with_failures(comparison: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """Return the comparison with the expectations' own columns, and `failed`: the names of the expectations that a row fails.

    expectations: with names as `quoted` returns them.
    """
    columns = {name: sql for one in expectations for name, sql in one.columns.items()}
    rows = comparison.select("*", *(F.expr(sql).alias(name) for name, sql in columns.items()))
    failed = (F.when(F.expr(one.rule.fails(quoted)), one.name) for one in expectations)
    return rows.withColumn("failed", F.array_compact(F.array(*failed)))


def evaluate(check: CheckedRecords, expectations: Sequence[Expectation]) -> list[ExpectationResult]:
    """Return the results of the expectations of keys and of stores, in the order of the stores.

    expectations: those from which the comparison's column `failed` was computed.
    """
    results = [*_key_results(check, expectations), *store_results(check)]
    order = {store: number for number, store in enumerate(check.request.stores)}
    return sorted(results, key=lambda result: order[result.store])


def _key_results(check: CheckedRecords, expectations: Sequence[Expectation]) -> list[ExpectationResult]:
    index = ("place", "key")
    rows = {row.place: row["count"] for row in check.comparison.groupBy("place").count().collect()}
    # First over all stores at once; then per store, for the expectations that are not met everywhere.
    all_rows = _in_memory(check.comparison) if sum(rows.values()) <= FEW_ROWS else check.comparison
    overall = validate(check.readings[0].store.name, all_rows, expectations, index)
    met = {result.expectation for result in overall if result.passed}
    unmet = [one for one in expectations if one.name not in met]
    results: list[ExpectationResult] = []
    for read in check.readings:
        name, replicas = read.store.name, read.replica_names
        checked = sum(rows.get(replica, 0) for replica in replicas)
        results += [ExpectationResult(name, one.name, checked, 0) for one in expectations if one.name in met]
        if unmet:
            own = check.comparison.where(col("place").isin(replicas))
            results += validate(name, own, unmet, index)
    return results


def _in_memory(comparison: DataFrame) -> pd.DataFrame:
    """Return the columns that rules can refer to: all but whole records and lists."""
    flat = [f.name for f in comparison.schema if not isinstance(f.dataType, StructType | ArrayType)]
    return comparison.select(*flat).toPandas()


def failing_keys(
    readings: Sequence[StoreReading], comparison: DataFrame
) -> tuple[tuple[FailingKey, ...], int]:
    """Return the first failing keys with both records of each, and the total number of failing keys."""
    store_of_replica = {name: read.store.name for read in readings for name in read.replica_names}
    failing = comparison.where(F.size("failed") > 0)
    total = failing.count()
    rows = failing.orderBy("place", "key").limit(LISTED_KEYS).collect() if total else []
    keys = tuple(
        FailingKey(
            store_of_replica[row.place],
            row.place,
            row.key,
            tuple(row.failed),
            {} if row.stored is None else row.stored.asDict(),
            {} if row.replayed is None else row.replayed.asDict(),
        )
        for row in rows
    )
    return keys, total


def faults(readings: Sequence[StoreReading]) -> list[str]:
    """Return the reasons why a whole store cannot be right."""
    return [fault for read in readings for fault in read.reading.faults]


def lost_events(check: CheckedRecords) -> list[str]:
    """Return a line for each partition of the log that has lost its first events."""
    topic = check.target.model.source_topic
    return [
        f"the log is not whole: {topic}/{partition} starts at offset {offset}, so nothing can be verified"
        for partition, offset in check.target.lost.items()
    ]


def describe_lag(readings: Sequence[StoreReading], comparison: DataFrame) -> list[str]:
    """Return a line for each store that lags its cut, with the number of events that its slowest replica lacks."""
    missing = F.coalesce(col("required_count") - F.coalesce(col("stored_count"), F.lit(0)), F.lit(0))
    late = comparison.where((col("stored_offset") < col("required_offset")) | col("stored").isNull())
    counted = late.groupBy("place").agg(F.sum(F.greatest(missing, F.lit(0))).alias("events")).collect()
    by_replica = {row.place: row.events for row in counted}
    lines = []
    for read in readings:
        events = max((by_replica.get(name, 0) for name in read.replica_names), default=0)
        if events:
            lines.append(f"not complete: {read.store.name} is behind by {events:,} events")
    return lines


def describe_replicas(read: StoreReading) -> str:
    """Return the names of a store's replicas, and the notes on how it was read."""
    return "; ".join((", ".join(read.replica_names), *read.reading.notes))


def unwritten_keys(replay: Replay) -> tuple[int, tuple[str, ...]]:
    """Return the number of keys without a record because their state cannot be written, and the first ones with what of it fails.

    It cannot be written where a store must have read them, or after all events.
    """
    if not replay.can_fail:
        return 0, ()
    found = replay.keys.where(col(FAILED).isNotNull()).select("key", FAILED)
    if replay.unwritten is not None:
        found = found.unionByName(replay.unwritten.select("key", FAILED))
    found = found.groupBy("key").agg(F.first(FAILED).alias(FAILED))
    number = found.count()
    named = found.orderBy("key").limit(NAMED_UNWRITTEN).collect() if number else []
    return number, tuple(f"{row['key']} ({row[FAILED]})" for row in named)
