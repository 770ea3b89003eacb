"""Opening what a check reads, once the tables hold the version that is live."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from include.quality.check import CheckRequest
from include.settings import Settings
from spark_jobs.quality.check_target import target_of
from spark_jobs.quality.stores.base import Store, Target
from spark_jobs.quality.stores.delta_table import DeltaStore
from spark_jobs.quality.stores.factory import store_of

LOG = logging.getLogger("foldlake.quality")
POLL_S = 1.0
# The lake's promotion waits for a running compaction, and is retried where it fails.
LAKE_FOLLOWS_WITHIN_S = 1800.0


@dataclass(frozen=True)
class OpenedCheck:
    """What is checked, and the stores that are read for it."""

    target: Target
    stores: Sequence[Store]

    @property
    def agrees(self) -> bool:
        """Whether every table holds the version that is checked."""
        number = self.target.version.number
        return all(store.version == number for store in self.stores if isinstance(store, DeltaStore))

    def close(self) -> None:
        """Free what opening and reading took."""
        for store in self.stores:
            store.close()
        self.target.frames.release()


def open_check(spark: SparkSession, settings: Settings, request: CheckRequest) -> OpenedCheck:
    """Open the stores of a check.

    A promotion is one record in the version registry, and the lake follows with a commit of its own. Where a table holds
    another version than the live one, both are read again until they agree. After the wait it is a fault.
    """
    began, began_s = datetime.now(UTC), time.monotonic()
    while True:
        check = _open(spark, settings, request)
        waited_s = time.monotonic() - began_s
        if check.agrees or request.version is not None or waited_s > _wait_limit_s(check, settings, began):
            return check
        LOG.info(
            "version %d is live and the lake holds another one: reading both again",
            check.target.version.number,
        )
        check.close()
        time.sleep(POLL_S)


def _wait_limit_s(check: OpenedCheck, settings: Settings, began: datetime) -> float:
    """Return for how long after the beginning a table may hold another version than the live one."""
    since = check.target.version.live_since
    if not since:
        return settings.quality.wait_s
    left_s = LAKE_FOLLOWS_WITHIN_S - (began - datetime.fromisoformat(since)).total_seconds()
    return max(settings.quality.wait_s, min(left_s, LAKE_FOLLOWS_WITHIN_S))


def _open(spark: SparkSession, settings: Settings, request: CheckRequest) -> OpenedCheck:
    target = target_of(spark, settings, request)
    stores: list[Store] = []
    try:
        stores.extend(store_of(name, target) for name in request.stores)
    except BaseException:
        OpenedCheck(target, stores).close()
        raise
    return OpenedCheck(target, stores)
