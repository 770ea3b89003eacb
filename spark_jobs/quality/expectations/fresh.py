"""The lake does not lag too far behind the log."""

from collections.abc import Sequence

import pandas as pd

from include.quality.check import ExpectationResult, StoreName
from spark_jobs.quality.checked_records import CheckedRecords
from spark_jobs.quality.rules import AtMost, Expectation
from spark_jobs.quality.stores.base import StoreReplica
from spark_jobs.quality.validation import validate

FRESH = "fresh"


def of_stores(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for the lake: the oldest event that it lacks must not be older than the setting allows."""
    lakes = [read for read in check.readings if read.store.name is StoreName.LAKE]
    expectation = fresh_within(check.target.settings.quality.max_lake_age_s)
    return [
        result
        for lake in lakes
        for result in validate(lake.store.name, lags(lake.reading.replicas), [expectation], ("place",))
    ]


def fresh_within(max_lag_s: float) -> Expectation:
    """Return the expectation for a maximum lag in seconds."""
    return Expectation(FRESH, AtMost("lag_s", max_lag_s))


def lags(replicas: Sequence[StoreReplica]) -> pd.DataFrame:
    """Return place, lag_s: the age of the oldest event that each replica lacks."""
    return pd.DataFrame([{"place": replica.name, "lag_s": replica.lag_s} for replica in replicas])
