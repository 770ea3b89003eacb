"""Runs a check.

1. Determine the cut, the current end offsets of the source. Open the stores once the lake contains the live version.
2. Read each store. A record is compared as of its own position, so nothing has to be stopped for the check.
3. Replay the log up to each stored position.
4. Read keys of a live store that are behind the cut again, until they reach it or the wait ends: an event in flight is not a
   fault.
5. Evaluate the expectations, and list the failures.
6. If all are met, keep the replayed records, from which incremental checks go on.

An incremental check reads the keys that have events since they were verified, and replays only these events.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, count_distinct, lit

from include.position import Offsets
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.settings import Settings
from include.work_progress import WorkProgress
from spark_jobs.folding.replay import source_ends
from spark_jobs.quality.check_setup import open_check
from spark_jobs.quality.check_target import lost_events
from spark_jobs.quality.checked_records import CheckedRecords
from spark_jobs.quality.comparison import (
    KEY_MAY_BE_MISSING,
    compare,
    compared_fields,
    distinct_cuts,
    positions_of,
)
from spark_jobs.quality.evaluation import (
    describe_lag,
    describe_lost_events,
    describe_replicas,
    evaluate,
    failing_keys,
    faults,
    with_failures,
)
from spark_jobs.quality.expectations import key_expectations
from spark_jobs.quality.key_sampling import Sampling
from spark_jobs.quality.log_replay import Replay, replay_fold
from spark_jobs.quality.stores.base import FrameSample, Store, StoreReading, Target
from spark_jobs.quality.unwritten_keys import may_lack, unwritten_keys
from spark_jobs.quality.verified.check_fingerprint import CheckFingerprint, basis_of
from spark_jobs.quality.verified.commit import commit_full, commit_increment
from spark_jobs.quality.verified.incremental_replay import IncrementalReplay
from spark_jobs.quality.verified.table import FullCheckNeededError, VerifiedRecords, VerifiedTable
from spark_jobs.runtime.job_progress import progress_logged, tasks_logged
from spark_jobs.runtime.session import ONE_TASK, SMALL_DATA, session_settings

LOG = logging.getLogger("foldlake.quality")
POLL_S = 0.5
# Up to this number of events on the log, its queries are of few rows.
SMALL_LOG_EVENTS = 50_000


def run_check(spark: SparkSession, settings: Settings, request: CheckRequest) -> CheckResult:
    """Run a check and return the result; if it passed, keep what it has verified for incremental checks.

    Where an incremental check is not possible, all keys are checked. Raises FoldlakeError when the check cannot complete:
    QualityError, KafkaUnavailableError, RegistryUnavailableError; and UncheckableError when the read model cannot be checked at all.
    """
    if request.mode is not Mode.INCREMENTAL:
        return _run(spark, settings, request)
    started_s = time.monotonic()
    try:
        return _run(spark, settings, request)
    except FullCheckNeededError as reason:
        LOG.info("checking all keys, because %s", reason)
        result = _run(spark, settings, replace(request, mode=Mode.FULL))
        return replace(result, full_check_reason=str(reason), duration_s=time.monotonic() - started_s)


def _run(spark: SparkSession, settings: Settings, request: CheckRequest) -> CheckResult:
    started_s, started_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    check = open_check(spark, settings, request)
    target = check.target
    LOG.info(
        "checking %s v%d, %s: %s, up to offsets %s",
        target.model.name,
        target.version.number,
        request.mode,
        ", ".join(request.stores),
        dict(target.cut),
    )
    try:
        basis = basis_of(target)
        verified = _verified(target, request, basis)
        since = verified.since if verified else Offsets()
        is_small = since.events_until(target.cut) <= SMALL_LOG_EVENTS
        small = SMALL_DATA | (ONE_TASK if verified else {})
        target.frames.have_few_rows = is_small
        with session_settings(spark, small if is_small else {}):
            return _check(target, request, check.stores, basis, verified, started_s, started_at)
    finally:
        check.close()


def _verified(
    target: Target, request: CheckRequest, basis: CheckFingerprint | None
) -> VerifiedRecords | None:
    """Return the verified records for an incremental check; None for another one. Raises FullCheckNeededError."""
    if request.mode is not Mode.INCREMENTAL:
        return None
    if basis is None:
        raise FullCheckNeededError(f"fold revision {target.version.fold_revision} has no merge")
    with session_settings(target.spark, SMALL_DATA):
        return VerifiedTable(target).read(basis, request.stores)


def _check(
    target: Target,
    request: CheckRequest,
    stores: Sequence[Store],
    basis: CheckFingerprint | None,
    verified: VerifiedRecords | None,
    started_s: float,
    started_at: str,
) -> CheckResult:
    lost = lost_events(target)
    increment = None if verified is None else IncrementalReplay(target, verified)
    sampling = Sampling(target, request, stores, increment)
    readings = [_read(target, store, sampling.sample, increment) for store in stores]
    compared, replay = _Comparison(target, readings, sampling.sample, increment).run()
    expectations = key_expectations(compared_fields(target))
    with _cached_step_logged(target, "comparing"):
        comparison = target.frames.keep(with_failures(compared, expectations))
        counted = comparison.agg(count(lit(1)).alias("records"), count_distinct("key").alias("keys")).first()
    assert counted is not None  # noqa: S101 - an aggregate without groups has one row
    LOG.info(
        "compared %s records with %s replayed events; evaluating",
        f"{counted.records:,}",
        f"{replay.events:,}",
    )
    unwritten = unwritten_keys(replay)
    check = CheckedRecords(target, request, readings, comparison, replay, sampling, lost)
    with _cached_step_logged(target, "evaluating"):
        results = evaluate(check, expectations)
        failing, total = failing_keys(readings, comparison)
    result = CheckResult(
        request=request,
        version=target.version.number,
        fold_revision=target.version.fold_revision,
        started_at=started_at,
        duration_s=time.monotonic() - started_s,
        events=replay.events,
        keys=counted["keys"],
        records=counted.records,
        all_keys=sampling.all_keys,
        expectations=tuple(results),
        failing_keys=failing,
        failing_keys_total=total,
        findings=(
            *faults(readings),
            *describe_lost_events(target, lost),
            *describe_lag(readings, comparison),
        ),
        places=tuple(describe_replicas(read) for read in readings),
        unwritten=unwritten.named,
        unwritten_total=unwritten.number,
    )
    if not result.passed or basis is None:
        return result
    table = VerifiedTable(target)
    if increment is not None and verified is not None:
        marks = commit_increment(table, request, verified, increment, readings, comparison)
    elif request.mode is Mode.FULL and not unwritten.number:
        marks = commit_full(table, request, basis, readings, comparison, replay)
    else:
        marks = {}
    return replace(result, verified=marks, duration_s=time.monotonic() - started_s)


def _read(
    target: Target, store: Store, sample: FrameSample, increment: IncrementalReplay | None
) -> StoreReading:
    started_s = time.monotonic()
    # Spark reads what the nodes have answered page by page, and counts a page as a record.
    unit = "pages" if store.name is StoreName.NODES else "records"
    with _step_logged(target, f"reading {store.name}", unit):
        reading = store.read(sample) if increment is None else increment.read(store)
        records = target.frames.keep(reading.records)
        count = records.count()
    LOG.info("%s: read %s records in %.1f s", store.name, f"{count:,}", time.monotonic() - started_s)
    return StoreReading(store, replace(reading, records=records), count)


class _Comparison:
    """Compares all stores with the log, and the keys that were behind once more."""

    def __init__(
        self,
        target: Target,
        readings: Sequence[StoreReading],
        sample: FrameSample,
        increment: IncrementalReplay | None,
    ) -> None:
        self._target = target
        self._increment = increment
        self._readings = readings
        self._sample = sample
        self._replicas = [replica for read in readings for replica in read.reading.replicas]

    def run(self) -> tuple[DataFrame, Replay]:
        """Return the comparison (see `comparison.compare`) and its replay."""
        records = _union([read.reading.records for read in self._readings])
        first, replay = self._compare(records)
        late = self._late(first)
        count = late.count()
        if count == 0:
            return first, replay
        LOG.info("%s records are behind the cut: reading them again", f"{count:,}")
        second, again = self._compare(self._reread(late, count), only=late)
        keys = late.select("place", "key")
        unchanged = first.join(keys, ["place", "key"], "left_anti")
        found = unchanged.unionByName(second.join(keys, ["place", "key"], "left_semi"))
        return found, replay.with_unwritten(again.unwritten)

    def _compare(self, records: DataFrame, only: DataFrame | None = None) -> tuple[DataFrame, Replay]:
        target, started_s = self._target, time.monotonic()
        # These ends are beyond every stored position, because the stores were read before.
        until = source_ends(target.settings.kafka.bootstrap_servers, target.model.source_topic)
        cuts = distinct_cuts(self._replicas)

        def replayed(positions: DataFrame, number: int, only: DataFrame | None) -> Replay:
            if self._increment is not None:
                return self._increment.replay(positions, cuts, until, only)
            total = target.model.starts.events_until(until)
            with _step_logged(target, "replaying the log", "events", total):
                return replay_fold(target, positions, number, cuts, until, only)

        number = sum(read.count for read in self._readings)
        replay = replayed(positions_of(records), number, only)
        LOG.info("replayed %s events in %.1f s", f"{replay.events:,}", time.monotonic() - started_s)
        found = target.frames.keep(compare(target, self._replicas, records, replay, self._sample))
        if replay.can_fail and (unwritten := may_lack(target, found, replayed)) is not None:
            found = found.join(unwritten.select("place", "key"), ["place", "key"], "left_anti")
            return target.frames.keep(found), replay.with_unwritten(unwritten)
        return found, replay

    @property
    def _live(self) -> list[StoreReading]:
        return [read for read in self._readings if read.store.may_catch_up]

    def _late(self, comparison: DataFrame) -> DataFrame:
        """Return place, key, required_offset, key_may_be_missing of the records that are behind the cut and may catch up."""
        replicas = [name for read in self._live for name in read.replica_names]
        behind = col("stored").isNull() | (col("stored_offset") < col("required_offset"))
        late = comparison.where(
            col("place").isin(replicas) & behind & col("required_offset").isNotNull()
        ).select("place", "key", "required_offset", KEY_MAY_BE_MISSING)
        return self._target.frames.keep(late)

    def _reread(self, late: DataFrame, count: int) -> DataFrame:
        """Return the records of these keys once all of them have caught up, or when the wait ends."""
        deadline_s = time.monotonic() + self._target.settings.quality.wait_s
        while True:
            fresh = self._target.frames.keep(_union([read.store.reread(late) for read in self._live]))
            has_left = col("source_offset").isNull() & col(KEY_MAY_BE_MISSING)
            reached = late.join(fresh, ["place", "key"], "left").where(
                (col("source_offset") >= col("required_offset")) | has_left
            )
            if reached.count() == count or time.monotonic() > deadline_s:
                return fresh
            fresh.unpersist()
            time.sleep(POLL_S)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def _step_logged(
    target: Target, step: str, unit: str = "records", total: int | None = None
) -> AbstractContextManager[None]:
    """Log during a block of code how many records a step has read.

    step: such as "replaying the log". total: the number of records that it reads, if known.
    """
    what = f"check of {target.model.name} v{target.version.number}: {step}"
    return progress_logged(target.spark, WorkProgress(what, unit, total, target.report))


def _cached_step_logged(target: Target, step: str) -> AbstractContextManager[None]:
    """Log during a block of code how many tasks a step has ended, which reads what other steps have cached."""
    what = f"check of {target.model.name} v{target.version.number}: {step}"
    progress = WorkProgress(what, "Spark tasks", None, target.report, is_total_final=False)
    return tasks_logged(target.spark, progress)
