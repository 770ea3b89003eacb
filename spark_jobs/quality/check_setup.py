"""Determines the target of a check, and opens the stores that it reads once the tables contain the live version."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.lake.tables import staging_path, table_path
from include.quality.check import CheckRequest, StoreName
from include.rebuild.stage_progress import StageReporter
from include.rebuild.stages.build import VERIFY
from include.replay.check.target import CheckTarget
from include.settings import Settings
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import SourceLog
from spark_jobs.quality.stores.base import Store
from spark_jobs.quality.stores.changelog import ChangelogStore
from spark_jobs.quality.stores.delta_table import DeltaStore
from spark_jobs.quality.stores.nodes import NodesStore
from spark_jobs.quality.target import RecordTypes, Target

LOG = logging.getLogger("foldlake.quality")
POLL_S = 1.0


@dataclass(frozen=True)
class OpenedCheck:
    """The session and the target of a check, and its open stores."""

    session: CheckSession
    target: Target
    stores: Sequence[Store]

    @property
    def agrees(self) -> bool:
        """Whether every table contains the version to check."""
        number = self.target.version.number
        return all(store.version == number for store in self.stores if isinstance(store, DeltaStore))

    def close(self) -> None:
        """Release the resources of the stores and the cached frames."""
        for store in self.stores:
            store.close()
        self.session.release()


def open_check(spark: SparkSession, settings: Settings, request: CheckRequest) -> OpenedCheck:
    """Open the stores of a check.

    While a table contains another version than the live one, both are reloaded until they agree. A difference that outlasts the wait is a fault.

    Raises QualityError when the version or a store does not exist, UnknownReadModelError, KafkaUnavailableError.
    """
    started, started_s = datetime.now(UTC), time.monotonic()
    while True:
        session, target = _session_and_target(spark, settings, request)
        stores: list[Store] = []
        check = OpenedCheck(session, target, stores)
        try:
            stores.extend(_store(name, settings.lake_root, session, target) for name in request.stores)
        except BaseException:
            check.close()
            raise
        if check.agrees or time.monotonic() - started_s > target.table_wait_s(request, started):
            return check
        LOG.info(
            "version %d is live, but the lake contains another one: reloading both", target.version.number
        )
        check.close()
        time.sleep(POLL_S)


def _session_and_target(
    spark: SparkSession, settings: Settings, request: CheckRequest
) -> tuple[CheckSession, Target]:
    """Return a new session for a check, and the check's target; errors as `open_check`."""
    checked = CheckTarget.of(settings, request)
    model, version = checked.model, checked.version
    log = SourceLog(spark, settings, model, version.fold_revision)
    title = f"check of {model.name} v{version.number}"
    session = CheckSession(spark, settings, log, title, _reporter(settings, request))
    types = RecordTypes.of(spark, model, version.fold_revision)
    return session, Target(**vars(checked), types=types)


def _reporter(settings: Settings, request: CheckRequest) -> StageReporter | None:
    """Return what publishes the progress if the check is the stage of a rebuild."""
    if request.version is None or StoreName.STAGING not in request.stores:
        return None
    return StageReporter(
        settings.kafka.bootstrap_servers,
        settings.topics.replication_factor,
        request.read_model,
        request.version,
        VERIFY.name,
    )


def _store(name: StoreName, lake_root: str, session: CheckSession, target: Target) -> Store:
    """Return the named store of the target; raises QualityError when it does not exist."""
    model = target.model.name
    match name:
        case StoreName.LAKE:
            return DeltaStore(name, session, target, table_path(lake_root, model))
        case StoreName.STAGING:
            path = staging_path(lake_root, model, target.version.number)
            return DeltaStore(name, session, target, path)
        case StoreName.CHANGELOG:
            return ChangelogStore(session, target)
        case StoreName.NODES:
            return NodesStore(session, target)
