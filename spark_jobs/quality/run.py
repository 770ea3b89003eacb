"""A check from its beginning to its verdict.

1. The cut: where the source ends now. The stores are opened, once the lake holds the live version. 2. Each store is read; a record is judged by its own position, so nothing has to
stand still meanwhile. 3. The log is folded again up to each stored position. 4. Keys of a live store that have not got
to the cut yet are asked for again until they have, or the time is over: an event on its way is no fault.
5. Great Expectations judges, and what failed is listed.
"""

import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from include.quality.check import CheckRequest, CheckResult, Mode
from include.settings import Settings
from spark_jobs.folding.replay import source_ends
from spark_jobs.quality import expectations as expected
from spark_jobs.quality.check_setup import opened
from spark_jobs.quality.check_target import lost_events
from spark_jobs.quality.comparison import (
    Replay,
    compare,
    compared_fields,
    distinct_cuts,
    positions_of,
    replay_fold,
)
from spark_jobs.quality.evaluation import (
    StoreReading,
    describe_lake_lag,
    describe_lost_events,
    describe_replicas,
    failing_keys,
    faults,
    judge_all,
    whole_log,
)
from spark_jobs.quality.key_sampling import Sampling
from spark_jobs.quality.stores.base import Sample, Store, Target

LOG = logging.getLogger("foldlake.quality")
POLL_S = 0.5


def run_check(spark: SparkSession, settings: Settings, request: CheckRequest) -> CheckResult:
    """Check, and return what was found; nothing is written.

    Raises FoldlakeError when the check cannot be made: QualityError, KafkaUnavailableError, RegistryUnavailableError; and
    UncheckableError when it never can.
    """
    began_s, started_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    found = opened(spark, settings, request)
    target = found.target
    LOG.info(
        "%s v%d, %s: %s, up to offsets %s",
        target.model.name,
        target.version.number,
        request.mode,
        ", ".join(request.stores),
        dict(target.cut),
    )
    try:
        return _checked(target, request, found.stores, began_s, started_at)
    finally:
        found.close()


def _checked(
    target: Target, request: CheckRequest, stores: Sequence[Store], began_s: float, started_at: str
) -> CheckResult:
    lost = lost_events(target)
    sampling = Sampling(target, request, stores)
    reads = [_read(target, store, sampling.sample) for store in stores]
    comparing = _Comparing(target, reads, sampling.sample)
    comparison, replay = comparing.compared()
    fields = compared_fields(target)
    judged = target.kept.keep(expected.judged_columns(comparison, fields))
    keys = judged.count()
    LOG.info("%s records compared, %s events replayed; judging", f"{keys:,}", f"{replay.events:,}")
    results = judge_all(target, reads, judged, fields)
    for read in reads if request.mode is Mode.SAMPLE else ():
        rows = sampling.count_rows(read.store, read.reading.places, replay)
        results += expected.judge(read.store.name, rows, expected.of_key_counts(), ("place",))
    results.append(whole_log(request, lost, len(target.cut)))
    failing, total = failing_keys(reads, judged)
    return CheckResult(
        request=request,
        version=target.version.number,
        fold_revision=target.version.fold_revision,
        started_at=started_at,
        duration_s=time.monotonic() - began_s,
        events=replay.events,
        keys=keys,
        expectations=tuple(results),
        failing_keys=failing,
        failing_keys_total=total,
        findings=(*faults(reads), *describe_lost_events(target, lost), *describe_lake_lag(reads, judged)),
        places=tuple(describe_replicas(read) for read in reads),
    )


def _read(target: Target, store: Store, sample: Sample) -> StoreReading:
    began_s = time.monotonic()
    reading = store.read(sample)
    count = target.kept.keep(reading.records).count()
    LOG.info("%s: %s records read in %.1f s", store.name, f"{count:,}", time.monotonic() - began_s)
    return StoreReading(store, reading)


class _Comparing:
    """The comparison of all stores with the log, and once more of those keys that were behind."""

    def __init__(self, target: Target, reads: Sequence[StoreReading], sample: Sample) -> None:
        self._target = target
        self._reads = reads
        self._sample = sample
        self._places = [place for read in reads for place in read.reading.places]

    def compared(self) -> tuple[DataFrame, Replay]:
        """Return the comparison (see `comparison.compare`), and the replay that it is with."""
        records = _union([read.reading.records for read in self._reads])
        first, replay = self._compare(records, self._sample)
        self._target.kept.keep(first)
        again = self._ask_again(first)
        if again is None:
            return first, replay
        wanted, fresh = again
        second, _ = self._compare(fresh, self._sample, only=wanted)
        mine = second.join(wanted.select("place", "key"), ["place", "key"], "left_semi")
        rest = first.join(wanted.select("place", "key"), ["place", "key"], "left_anti")
        return rest.unionByName(mine), replay

    def _compare(
        self, records: DataFrame, sample: Sample, only: DataFrame | None = None
    ) -> tuple[DataFrame, Replay]:
        target, began_s = self._target, time.monotonic()
        # Beyond every stored position: they were read before.
        until = source_ends(target.settings, target.model.source_topic)
        replay = replay_fold(target, positions_of(records), distinct_cuts(self._places), until, only)
        LOG.info("%s events folded again in %.1f s", f"{replay.events:,}", time.monotonic() - began_s)
        return compare(target, self._places, records, replay, sample), replay

    def _ask_again(self, first: DataFrame) -> tuple[DataFrame, DataFrame] | None:
        """Return (the places and keys that were behind, their records as they are once they are not, or time is over)."""
        live = [read for read in self._reads if read.store.may_catch_up]
        places = [place.name for read in live for place in read.reading.places]
        behind = col("stored").isNull() | (col("stored_offset") < col("required_offset"))
        late = first.where(col("place").isin(places) & behind & col("required_offset").isNotNull())
        wanted = self._target.kept.keep(late.select("place", "key", "required_offset"))
        count = wanted.count()
        if count == 0:
            return None
        deadline_s = time.monotonic() + self._target.settings.quality.wait_s
        LOG.info("%s records have not got to the cut yet: asking again", f"{count:,}")
        while True:
            fresh = self._target.kept.keep(_union([read.store.read_again(wanted) for read in live]))
            reached = wanted.join(fresh, ["place", "key"]).where(
                col("source_offset") >= col("required_offset")
            )
            if reached.count() == count or time.monotonic() > deadline_s:
                return wanted, fresh
            fresh.unpersist()
            time.sleep(POLL_S)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)
