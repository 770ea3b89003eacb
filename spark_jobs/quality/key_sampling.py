"""Samples keys, and counts all keys: a key lost outside of those that are compared shows in the count."""

import time
import zlib
from collections.abc import Mapping, Sequence
from math import ceil

import pandas as pd
from pyspark.sql.functions import col, count, lit, when

from include.nodes.record_client import STANDBY
from include.quality.check import CheckRequest, Mode
from include.settings import QualitySettings
from spark_jobs.quality.comparison import KEY_MAY_BE_MISSING, keys_by_replica
from spark_jobs.quality.log_replay import Replay
from spark_jobs.quality.stores.base import FrameSample, Store, StoreReplica
from spark_jobs.quality.verified.incremental_replay import IncrementalReplay

POLL_S = 0.5


class Sampling:
    """The sample of one check: about as many keys as the setting says, different ones in each run."""

    def __init__(
        self,
        settings: QualitySettings,
        request: CheckRequest,
        stores: Sequence[Store],
        increment: IncrementalReplay | None = None,
    ) -> None:
        self._settings = settings
        self._increment = increment
        self._before: dict[str, int] = {}
        # In the store that has most; 0 if all are compared.
        self.all_keys = 0
        self.sample = FrameSample()
        if request.mode is Mode.FULL:
            return
        for store in stores:
            counts = store.key_counts()
            self._before |= counts
            own = sum(n for replica, n in counts.items() if STANDBY not in replica)
            self.all_keys = max(self.all_keys, own)
        if request.mode is Mode.SAMPLE:
            self.sample = self._sample(request.run_id, self.all_keys)

    def _sample(self, run_id: str, keys: int) -> FrameSample:
        buckets = max(1, ceil(keys / self._settings.sample_keys))
        return FrameSample(zlib.crc32(run_id.encode()) % buckets, buckets)

    def key_differences(self, store: Store, replicas: Sequence[StoreReplica], replay: Replay) -> pd.DataFrame:
        """Return place, difference: how many keys each replica lacks, or has too many.

        It lacks keys if it has fewer than have events below the cut; keys that may still arrive are awaited first. It has too
        many if it had more than the log had at the replay, which came after the count.
        """
        if self._increment is None:
            required, known = self._key_numbers(replicas, replay)
        else:
            required, known = self._increment.key_numbers(store.name, replicas)
        after = self._after(store, required)
        return pd.DataFrame(
            [
                {"place": r.name, "difference": self._difference(r.name, required, known, after)}
                for r in replicas
            ]
        )

    def _key_numbers(
        self, replicas: Sequence[StoreReplica], replay: Replay
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Return by replica the number of keys that it must have, and the number of keys in the log."""
        counted = keys_by_replica(replicas, replay).groupBy("place")
        # A key whose state cannot be written may be missing.
        must_exist = when(~col(KEY_MAY_BE_MISSING), col("required_offset"))
        rows = counted.agg(count(must_exist).alias("required"), count(lit(1)).alias("known")).collect()
        return {row.place: row.required for row in rows}, {row.place: row.known for row in rows}

    def _after(self, store: Store, required: Mapping[str, int]) -> Mapping[str, int]:
        deadline_s = time.monotonic() + self._settings.wait_s
        while True:
            counts = store.key_counts()
            short = any(counts.get(replica, 0) < number for replica, number in required.items())
            if not short or not store.may_catch_up or time.monotonic() > deadline_s:
                return counts
            time.sleep(POLL_S)

    def _difference(
        self, replica: str, required: Mapping[str, int], known: Mapping[str, int], after: Mapping[str, int]
    ) -> int:
        too_few = required.get(replica, 0) - after.get(replica, 0)
        too_many = self._before.get(replica, 0) - known.get(replica, 0)
        return max(0, too_few, too_many)
