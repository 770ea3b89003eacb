"""Checking a sample: which keys are in it, and counting all the others, so that none is lost outside of it."""

import time
import zlib
from collections.abc import Mapping, Sequence
from math import ceil

import pandas as pd
from pyspark.sql.functions import col, count, lit

from include.nodes.record_client import STANDBY
from include.quality.check import CheckRequest, Mode
from spark_jobs.quality.comparison import Replay, keys_by_place
from spark_jobs.quality.stores.base import Sample, Store, StoreReplica, Target

POLL_S = 0.5


class Sampling:
    """The sample of one check. A sample has about as many keys as the setting says; each run takes other ones."""

    def __init__(self, target: Target, request: CheckRequest, stores: Sequence[Store]) -> None:
        self._target = target
        self._before: dict[str, int] = {}
        self.sample = Sample()
        if request.mode is Mode.SAMPLE:
            self.sample = self._sample(request.run_id, stores)

    def _sample(self, run_id: str, stores: Sequence[Store]) -> Sample:
        keys = 0
        for store in stores:
            counts = store.key_counts()
            self._before |= counts
            keys = max(keys, sum(n for place, n in counts.items() if STANDBY not in place))
        buckets = max(1, ceil(keys / self._target.settings.quality.sample_keys))
        return Sample(zlib.crc32(run_id.encode()) % buckets, buckets)

    def count_rows(self, store: Store, places: Sequence[StoreReplica], replay: Replay) -> pd.DataFrame:
        """Return place, difference: keys too few, or too many, of each place.

        Too few for those that must be there by the cut; where they may be on their way, they are waited for. Too many
        for all that the log had after they were counted first.
        """
        counted = keys_by_place(self._target, places, replay).groupBy("place")
        rows = counted.agg(count("required_offset").alias("required"), count(lit(1)).alias("known")).where(
            col("known") > 0
        )
        required, known = {}, {}
        for row in rows.collect():
            required[row.place], known[row.place] = row.required, row.known
        after = self._after(store, required)
        return pd.DataFrame(
            [
                {"place": p.name, "difference": self._difference(p.name, required, known, after)}
                for p in places
            ]
        )

    def _after(self, store: Store, required: Mapping[str, int]) -> Mapping[str, int]:
        deadline_s = time.monotonic() + self._target.settings.quality.wait_s
        while True:
            counts = store.key_counts()
            short = any(counts.get(place, 0) < number for place, number in required.items())
            if not short or not store.may_catch_up or time.monotonic() > deadline_s:
                return counts
            time.sleep(POLL_S)

    def _difference(
        self, place: str, required: Mapping[str, int], known: Mapping[str, int], after: Mapping[str, int]
    ) -> int:
        too_few = required.get(place, 0) - after.get(place, 0)
        too_many = self._before.get(place, 0) - known.get(place, 0)
        return max(0, too_few, too_many)
