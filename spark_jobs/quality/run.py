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
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql.functions import count, count_distinct, lit

from include.position import Offsets
from include.quality.check import CheckRequest, CheckResult, FullCheckNeededError, Mode
from include.replay.key_expectations import key_expectations
from include.settings import Settings
from spark_jobs.quality.check_setup import open_check
from spark_jobs.quality.comparison import LogComparison
from spark_jobs.quality.evaluation import (
    describe_lag,
    describe_replicas,
    evaluate,
    failing_keys,
    faults,
    lost_events,
    quoted,
    unwritten_keys,
    with_failures,
)
from spark_jobs.quality.expectations import CheckedRecords
from spark_jobs.quality.key_sampling import Sampling
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.stores.base import FrameSample, Store, StoreReading
from spark_jobs.quality.target import Target
from spark_jobs.quality.verified.incremental_replay import IncrementalReplay
from spark_jobs.quality.verified.table import VerifiedRecords, VerifiedTable
from spark_jobs.quality.verified_commit import commit_full, commit_increment

LOG = logging.getLogger("foldlake.quality")
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
    session, target = check.session, check.target
    LOG.info(
        "checking %s v%d, %s: %s, up to offsets %s",
        target.model.name,
        target.version.number,
        request.mode,
        ", ".join(request.stores),
        dict(target.cut),
    )
    try:
        table = VerifiedTable(session, target)
        verified = table.read(request.stores) if request.mode is Mode.INCREMENTAL else None
        since = verified.since if verified else Offsets()
        is_small = since.events_until(target.cut) <= SMALL_LOG_EVENTS
        with session.sized(is_small=is_small, is_incremental=verified is not None):
            result = _check(session, target, request, check.stores, table, verified)
        return replace(result, started_at=started_at, duration_s=time.monotonic() - started_s)
    finally:
        check.close()


def _check(
    session: CheckSession,
    target: Target,
    request: CheckRequest,
    stores: Sequence[Store],
    table: VerifiedTable,
    verified: VerifiedRecords | None,
) -> CheckResult:
    """Return the result, without its start and duration."""
    increment = None if verified is None else IncrementalReplay(session, target, verified)
    sampling = Sampling(session.settings.quality, request, stores, increment)
    readings = [_read(session, store, sampling.sample, increment) for store in stores]
    compared, replay = LogComparison(session, target, readings, sampling.sample, increment).run()
    expectations = key_expectations(target.types.fields, quoted)
    with session.computing("comparing"):
        comparison = session.keep(with_failures(compared, expectations))
        counted = comparison.agg(count(lit(1)).alias("records"), count_distinct("key").alias("keys")).first()
    assert counted is not None  # noqa: S101 - an aggregate without groups has one row
    LOG.info(
        "compared %s records with %s replayed events; evaluating",
        f"{counted.records:,}",
        f"{replay.events:,}",
    )
    unwritten, named_unwritten = unwritten_keys(replay)
    max_lake_age_s = session.settings.quality.max_lake_age_s
    checked = CheckedRecords(target, request, readings, comparison, replay, sampling, max_lake_age_s)
    with session.computing("evaluating"):
        results = evaluate(checked, expectations)
        failing, total = failing_keys(readings, comparison)
    result = CheckResult(
        request=request,
        version=target.version.number,
        fold_revision=target.version.fold_revision,
        started_at="",
        duration_s=0.0,
        events=replay.events,
        keys=counted["keys"],
        records=counted.records,
        all_keys=sampling.all_keys,
        expectations=tuple(results),
        failing_keys=failing,
        failing_keys_total=total,
        findings=(*faults(readings), *lost_events(checked), *describe_lag(readings, comparison)),
        places=tuple(describe_replicas(read) for read in readings),
        unwritten=named_unwritten,
        unwritten_total=unwritten,
    )
    if not result.passed:
        return result
    if increment is not None:
        marks = commit_increment(session, table, checked, increment)
    elif request.mode is Mode.FULL and not unwritten:
        marks = commit_full(session, table, checked)
    else:
        marks = {}
    return replace(result, verified=marks)


def _read(
    session: CheckSession, store: Store, sample: FrameSample, increment: IncrementalReplay | None
) -> StoreReading:
    started_s = time.monotonic()
    with session.reading(f"reading {store.name}"):
        reading = store.read(sample) if increment is None else increment.read(store)
        records = session.keep(reading.records)
        count = records.count()
    LOG.info("%s: read %s records in %.1f s", store.name, f"{count:,}", time.monotonic() - started_s)
    return StoreReading(store, replace(reading, records=records), count)
