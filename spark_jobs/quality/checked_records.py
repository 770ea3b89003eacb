"""The records that a check has read and compared, as input for the expectations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from include.quality.check import CheckRequest
from spark_jobs.quality.key_sampling import Sampling
from spark_jobs.quality.log_replay import Replay
from spark_jobs.quality.stores.base import StoreReading, Target


@dataclass(frozen=True)
class CheckedRecords:
    """The input of the expectations.

    readings: one for each store of the request, in the same order.
    comparison: see `comparison.compare`; with `failed`, the names of the expectations that a row fails.
    lost_events: source partition -> first offset still in the log, for partitions that have lost their first events.
    """

    target: Target
    request: CheckRequest
    readings: Sequence[StoreReading]
    comparison: DataFrame
    replay: Replay
    sampling: Sampling
    lost_events: Mapping[int, int]
