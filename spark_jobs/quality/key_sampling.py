"""Samples keys, and counts all keys: a key lost outside of those that are compared shows in the count."""

from collections.abc import Sequence

import pandas as pd
from pyspark.sql.functions import col, count, lit, when

from include.quality.check import CheckRequest, Mode
from include.replay.check.key_counts import KeyCounts
from include.settings import QualitySettings
from spark_jobs.quality.comparison import KEY_MAY_BE_MISSING, keys_by_replica
from spark_jobs.quality.log_replay import Replay
from spark_jobs.quality.stores.base import FrameSample, Store, StoreReplica
from spark_jobs.quality.verified.incremental_replay import IncrementalReplay


class Sampling:
    """The sample of one check: about as many keys as the setting says, different ones in each run.

    all_keys: the number in the store that has most; 0 if all are compared.
    """

    def __init__(
        self,
        settings: QualitySettings,
        request: CheckRequest,
        stores: Sequence[Store],
        increment: IncrementalReplay | None = None,
    ) -> None:
        self._wait_s = settings.wait_s
        self._increment = increment
        self._counts = KeyCounts(() if request.mode is Mode.FULL else stores)
        self.all_keys = self._counts.all_keys
        self.sample = FrameSample()
        if request.mode is Mode.SAMPLE:
            found = self._counts.sample(request.run_id, settings.sample_keys)
            self.sample = FrameSample(found.bucket, found.buckets)

    def key_differences(self, store: Store, replicas: Sequence[StoreReplica], replay: Replay) -> pd.DataFrame:
        """Return place, difference: how many keys each replica lacks, or has too many (see KeyCounts)."""
        if self._increment is None:
            numbers = self._key_numbers(replicas, replay)
        else:
            required, known = self._increment.key_numbers(store.name, replicas)
            numbers = {place: (required[place], known[place]) for place in required}
        found = self._counts.differences(store, numbers, self._wait_s)
        return pd.DataFrame([{"place": place, "difference": number} for place, number in found.items()])

    def _key_numbers(self, replicas: Sequence[StoreReplica], replay: Replay) -> dict[str, tuple[int, int]]:
        """Return by replica the number of keys that it must have, and the number of keys in the log."""
        counted = keys_by_replica(replicas, replay).groupBy("place")
        # A key whose state cannot be written may be missing.
        must_exist = when(~col(KEY_MAY_BE_MISSING), col("required_offset"))
        rows = counted.agg(count(must_exist).alias("required"), count(lit(1)).alias("known")).collect()
        found = {row.place: (row.required, row.known) for row in rows}
        return {replica.name: found.get(replica.name, (0, 0)) for replica in replicas}
