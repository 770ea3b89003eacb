"""Runs a check with Spark: opens the stores that it reads once the tables contain the live version."""

import logging
import time
from contextlib import ExitStack
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.lake.tables import staging_path, table_path
from include.quality.check import CheckRequest, CheckResult, StoreName
from include.rebuild.stage_progress import StageReporter
from include.rebuild.stages.build import VERIFY
from include.replay.check.check import full_if_needed
from include.replay.check.target import CheckTarget
from include.settings import Settings
from spark_jobs.quality.check import SparkCheck
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import SourceLog
from spark_jobs.quality.stores.base import FrameStore, StoredFrames
from spark_jobs.quality.stores.changelog import ChangelogStore
from spark_jobs.quality.stores.delta_table import DeltaStore
from spark_jobs.quality.stores.nodes import NodesStore
from spark_jobs.quality.tables import SparkTables
from spark_jobs.quality.target import RecordTypes, Target

LOG = logging.getLogger("foldlake.quality")
POLL_S = 1.0


def run_check(spark: SparkSession, settings: Settings, request: CheckRequest) -> CheckResult:
    """Run a check and return the result; if it passed, keep what it has verified for incremental checks.

    Where an incremental check is not possible, all keys are checked. Raises FoldlakeError when the check cannot complete:
    QualityError, KafkaUnavailableError, RegistryUnavailableError; and UncheckableError when the read model cannot be checked at all.
    """
    return full_if_needed(request, lambda asked: _run(spark, settings, asked))


def _run(spark: SparkSession, settings: Settings, request: CheckRequest) -> CheckResult:
    """Run a check once each table contains the live version. A difference that outlasts the wait is a fault."""
    started, started_s = datetime.now(UTC), time.monotonic()
    while True:
        target = _target(spark, settings, request)
        with ExitStack() as resources:
            check, stores = _opened(spark, target, request, resources)
            number = target.version.number
            has_right_tables = all(
                store.version == number for store in stores if isinstance(store, DeltaStore)
            )
            if has_right_tables or time.monotonic() - started_s > target.table_wait_s(request, started):
                return check.run()
        LOG.info("version %d is live, but the lake contains another one: reloading both", number)
        time.sleep(POLL_S)


def _target(spark: SparkSession, settings: Settings, request: CheckRequest) -> Target:
    found = CheckTarget.of(settings, request)
    types = RecordTypes.of(spark, found.model, found.version.fold_revision)
    return Target(**vars(found), types=types)


def _opened(
    spark: SparkSession, target: Target, request: CheckRequest, resources: ExitStack
) -> tuple[SparkCheck, list[FrameStore]]:
    """Open the stores of a check; raises QualityError when one does not exist."""
    model, number = target.model, target.version.number
    log = SourceLog(spark, target.settings, model, target.version.fold_revision)
    title = f"check of {model.name} v{number}"
    session = CheckSession(spark, target.settings, log, title, _reporter(target.settings, request))
    resources.callback(session.release)
    tables = SparkTables(session)
    resources.callback(tables.close)
    stored = StoredFrames(session, tables)
    stores: list[FrameStore] = []
    for name in request.stores:
        stores.append(_store(name, session, target, stored))
        resources.callback(stores[-1].close)
    return SparkCheck(session, tables, target, request, stored, stores, resources), stores


def _reporter(settings: Settings, request: CheckRequest) -> StageReporter | None:
    """Return what publishes the progress if the check is the stage of a rebuild."""
    if request.version is None or StoreName.STAGING not in request.stores:
        return None
    return StageReporter(
        settings.kafka_connection,
        settings.topics.replication_factor,
        request.read_model,
        request.version,
        VERIFY.name,
    )


def _store(name: StoreName, session: CheckSession, target: Target, stored: StoredFrames) -> FrameStore:
    """Return the named store of the target; raises QualityError when it does not exist."""
    lake_root, model = target.settings.lake_root, target.model.name
    match name:
        case StoreName.LAKE:
            return DeltaStore(name, session, target, table_path(lake_root, model), stored)
        case StoreName.STAGING:
            path = staging_path(lake_root, model, target.version.number)
            return DeltaStore(name, session, target, path, stored)
        case StoreName.CHANGELOG:
            return ChangelogStore(session, target, stored)
        case StoreName.NODES:
            return NodesStore(session, target, stored)
