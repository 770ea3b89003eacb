"""What a check has read and compared, before the expectations are evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from include.quality.check import CheckRequest
from spark_jobs.quality.comparison import Replay
from spark_jobs.quality.key_sampling import Sampling
from spark_jobs.quality.stores.base import Reading, Store, Target


@dataclass(frozen=True)
class StoreReading:
    """A store and what was read of it; its records are cached, so that they are the same whenever they are looked at."""

    store: Store
    reading: Reading

    @property
    def replica_names(self) -> list[str]:
        """The names of its replicas."""
        return [replica.name for replica in self.reading.replicas]


@dataclass(frozen=True)
class CheckedRecords:
    """All that an expectation can be evaluated over.

    readings: one for each store of the request, in its order.
    comparison: see `comparison.compare`; with `failed`, the names of the expectations that a row fails.
    lost_events: source partition -> first offset still there, where the log has lost its beginning.
    """

    target: Target
    request: CheckRequest
    readings: Sequence[StoreReading]
    comparison: DataFrame
    replay: Replay
    sampling: Sampling
    lost_events: Mapping[int, int]
