"""Handing a version over: the stream driver continues from its checkpoint, in real time."""

import logging
import time
from functools import partial
from pathlib import Path

from include.rebuild.errors import QueryRefusedError, StageTimeoutError
from include.rebuild.stage_progress import StageReporter
from include.stream.query_reports import CONTINUOUS, Phase, QueryReport, describe_query, query_status
from include.versions.registry import VersionRegistry, change, record_of
from include.versions.transitions import hand_over, require_not_ended
from include.versions.version_lock import version_lock
from include.versions.version_record import Stage
from include.waiting import wait_for

LOG = logging.getLogger(__name__)
# A catch-up releases its lock when it ends; if it is killed, within a second.
LOCK_WAIT_S = 60.0
POLL_INTERVAL_S = 1.0
# The driver reloads a read model's module before it refuses a version, and retries every few seconds.
REFUSAL_TIMEOUT_S = 30.0


def hand_over_version(
    registry: VersionRegistry,
    home: Path,
    read_model: str,
    number: int,
    report: StageReporter,
    timeout_s: float,
) -> None:
    """Make the version a candidate and wait until the driver folds it in real time.

    home: of the locks of versions. report: publishes that the stage waits.

    Raises VersionLockedError while a catch-up still writes, QueryRefusedError when the driver lacks its fold,
    StageTimeoutError when the driver does not reach real time within the timeout, VersionAbandonedError when the version is abandoned meanwhile.
    """
    _make_candidate(registry, home, read_model, number)
    LOG.info("v%d of %s is a candidate: the stream driver takes it over", number, read_model)
    _Handover(registry, read_model, number, report).wait(timeout_s)


class _Handover:
    """Waits for the stream driver to fold one candidate."""

    def __init__(
        self, registry: VersionRegistry, read_model: str, number: int, report: StageReporter
    ) -> None:
        self._registry = registry
        self._read_model = read_model
        self._number = number
        self._query: QueryReport | None = None
        self._report = report
        self._not_refused_s = time.monotonic()

    def wait(self, timeout_s: float) -> None:
        self._report.waits()
        query = wait_for(
            self._running_query,
            timeout_s=timeout_s,
            poll_s=POLL_INTERVAL_S,
            while_waiting=self._check_and_log,
        )
        if query is None:
            raise StageTimeoutError(
                f"The stream driver did not fold v{self._number} of {self._read_model} within {timeout_s} s: "
                f"{describe_query(self._query)}. `./foldlake logs stream` shows the driver's log."
            )
        LOG.info("the stream driver (pid %d) folds it", query.driver_pid)

    def _running_query(self) -> QueryReport | None:
        """Return the query once it is in real time; raises QueryRefusedError when the driver keeps refusing it."""
        self._query = query = query_status(self._registry.kafka, self._read_model, self._number)
        now_s = time.monotonic()
        if query is None or query.phase != Phase.REFUSED:
            self._not_refused_s = now_s
        elif now_s - self._not_refused_s > REFUSAL_TIMEOUT_S:
            raise QueryRefusedError(
                f"The stream driver refuses v{self._number} of {self._read_model}: {query.last_error}"
            )
        return query if query is not None and query.phase in CONTINUOUS else None

    def _check_and_log(self, waited_s: float) -> None:
        """Log the progress; raises VersionAbandonedError or VersionRetiredError when the version has ended."""
        require_not_ended(record_of(self._registry, self._read_model), self._number)
        self._report.waits()
        LOG.info(
            "progress: hand over of %s v%d: %.0f s, %s",
            self._read_model,
            self._number,
            waited_s,
            describe_query(self._query),
        )


def _make_candidate(registry: VersionRegistry, home: Path, read_model: str, number: int) -> None:
    version = record_of(registry, read_model).version(number)
    if version is None or version.stage is not Stage.BUILDING:
        # Handed over by an earlier try (the driver may already hold the lock), or invalid, for which `change` raises an error.
        change(registry, read_model, partial(hand_over, number=number))
        return
    # Under the lock: a catch-up that starts later finds a candidate and does not write to it.
    with version_lock(home, read_model, number, wait_s=LOCK_WAIT_S):
        change(registry, read_model, partial(hand_over, number=number))
