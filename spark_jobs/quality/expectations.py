"""The expectations of whole stores, evaluated with Spark. Those of each key are in include/replay/key_expectations.py.

A new one is a function in STORE_EXPECTATIONS.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.quality.check import CheckRequest, ExpectationResult, Mode, StoreName
from include.replay.key_expectations import (
    NOT_TRUNCATED,
    RIGHT_STORE,
    SAME_COUNT,
    WHOLE_LOG,
    fresh_within,
)
from include.replay.validation import validate
from spark_jobs.quality.key_sampling import Sampling
from spark_jobs.quality.log_replay import Replay
from spark_jobs.quality.stores.base import StoreReading, StoreReplica
from spark_jobs.quality.target import Target


@dataclass(frozen=True)
class CheckedRecords:
    """The records that a check has read and compared: the input of the expectations.

    readings: one for each store of the request, in the same order.
    comparison: see `comparison.compare`; with `failed`, the names of the expectations that a row fails.
    max_lake_age_s: the greatest age of an event that the lake may lack.
    """

    target: Target
    request: CheckRequest
    readings: Sequence[StoreReading]
    comparison: DataFrame
    replay: Replay
    sampling: Sampling
    max_lake_age_s: float


def fresh(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for the lake: the oldest event that it lacks must not be older than the setting allows."""
    lakes = [read for read in check.readings if read.store.name is StoreName.LAKE]
    expectation = fresh_within(check.max_lake_age_s)
    return [
        result
        for lake in lakes
        for result in validate(lake.store.name, lags(lake.reading.replicas), [expectation], ("place",))
    ]


def lags(replicas: Sequence[StoreReplica]) -> pd.DataFrame:
    """Return place, lag_s: the age of the oldest event that each replica lacks."""
    return pd.DataFrame([{"place": replica.name, "lag_s": replica.lag_s} for replica in replicas])


def key_count(check: CheckedRecords) -> list[ExpectationResult]:
    """If not all keys are compared, return a result for each store: it has as many keys in total as the log.

    None for a full check, which compares every key, and none if keys can leave between two counts.
    """
    if check.request.mode is Mode.FULL or check.target.model.items_leave:
        return []
    results = []
    for read in check.readings:
        differences = check.sampling.key_differences(read.store, read.reading.replicas, check.replay)
        results += validate(read.store.name, differences, [SAME_COUNT], ("place",))
    return results


def no_truncated_partition(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for each store: no partition of a replica has lost a large share of its keys."""
    partitions = missing_shares(check.comparison).toPandas()
    results = []
    for read in check.readings:
        own = partitions[partitions["place"].isin(read.replica_names)]
        results += validate(read.store.name, own, [NOT_TRUNCATED], ("place", "partition"))
    return results


def missing_shares(comparison: DataFrame) -> DataFrame:
    """Return place, partition, keys (the required number), missing, missing_share (0 if only one is missing)."""
    required = comparison.where(col("required_offset").isNotNull())
    counted = required.groupBy("place", col("partition").cast("string").alias("partition")).agg(
        F.count("*").alias("keys"), F.count_if(col("stored").isNull()).alias("missing")
    )
    share = F.when(col("missing") > 1, col("missing") / col("keys")).otherwise(0.0)
    return counted.withColumn("missing_share", share)


def right_store(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for each store: it contains the version that is checked, and could be read completely."""
    return [
        ExpectationResult(
            read.store.name,
            RIGHT_STORE,
            max(len(read.reading.replicas), len(read.reading.faults)),
            len(read.reading.faults),
            finding="; ".join(read.reading.faults),
        )
        for read in check.readings
    ]


def whole_log(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for the source topic, attributed to the first store: without its first events, nothing can be verified."""
    lost = check.target.lost
    sample = tuple({"partition": str(p), "first_offset": str(offset)} for p, offset in lost.items())
    partitions = len(check.target.cut)
    return [ExpectationResult(check.request.stores[0], WHOLE_LOG, partitions, len(lost), sample=sample)]


STORE_EXPECTATIONS = (fresh, key_count, no_truncated_partition, right_store, whole_log)


def store_results(check: CheckedRecords) -> list[ExpectationResult]:
    """Return the results of the expectations of whole stores; none for a store to which an expectation does not apply."""
    return [result for expectation in STORE_EXPECTATIONS for result in expectation(check)]
