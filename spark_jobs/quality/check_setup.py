"""Opens the stores that a check reads, once the tables contain the live version."""

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
# The promotion in the lake waits for a running compaction, and is retried after a failure.
LAKE_FOLLOWS_WITHIN_S = 1800.0


@dataclass(frozen=True)
class OpenedCheck:
    """The target of a check, and its open stores."""

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
        self.target.frames.release()


def open_check(spark: SparkSession, settings: Settings, request: CheckRequest) -> OpenedCheck:
    """Open the stores of a check.

    A promotion is one record in the version registry; the lake follows with a separate commit. While a table contains
    another version than the live one, both are reloaded until they agree. A difference that outlasts the wait is a fault.
    """
    started, started_s = datetime.now(UTC), time.monotonic()
    while True:
        check = _open(spark, settings, request)
        waited_s = time.monotonic() - started_s
        if (
            check.agrees
            or request.version is not None
            or waited_s > _wait_limit_s(check, settings.quality.wait_s, started)
        ):
            return check
        LOG.info(
            "version %d is live, but the lake contains another one: reloading both",
            check.target.version.number,
        )
        check.close()
        time.sleep(POLL_S)


def _wait_limit_s(check: OpenedCheck, wait_s: float, started: datetime) -> float:
    """Return for how long after the start a table may contain another version than the live one."""
    since = check.target.version.live_since
    if not since:
        return wait_s
    left_s = LAKE_FOLLOWS_WITHIN_S - (started - datetime.fromisoformat(since)).total_seconds()
    return max(wait_s, min(left_s, LAKE_FOLLOWS_WITHIN_S))


def _open(spark: SparkSession, settings: Settings, request: CheckRequest) -> OpenedCheck:
    target = target_of(spark, settings, request)
    stores: list[Store] = []
    try:
        stores.extend(store_of(name, target) for name in request.stores)
    except BaseException:
        OpenedCheck(target, stores).close()
        raise
    return OpenedCheck(target, stores)
