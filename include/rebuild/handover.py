"""The stage `hand_over`: the stream driver goes on with the version's checkpoint, in real time."""

import logging
import time
from functools import partial

from include.rebuild.errors import QueryRefusedError, StageTimeoutError
from include.rebuild.query_status import query_status
from include.settings import Settings
from include.stream.status import QueryStatus
from include.versions.registry import Stage, VersionRegistry
from include.versions.transitions import change, hand_over, record_of, require_not_ended
from include.versions.version_lock import version_lock

LOG = logging.getLogger(__name__)
# A catch-up that has ended lets go of its lock at once; one that was killed, within a second.
LOCK_WAIT_S = 60.0
POLL_INTERVAL_S = 1.0
LOG_INTERVAL_S = 5.0
# The driver imports a module again before it says no, and looks again every few seconds.
REFUSED_FOR_S = 30.0
REAL_TIME = "real time"
REFUSED = "refused"


def hand_over_version(settings: Settings, read_model: str, number: int) -> None:
    """Make the version a candidate and wait until the driver folds it in real time.

    Raises VersionLockedError while a catch-up still writes, QueryRefusedError when the driver lacks its fold,
    StageTimeoutError when the driver does not get there in time, VersionAbandonedError when the version was given up meanwhile.
    """
    _make_candidate(settings, read_model, number)
    LOG.info("v%d of %s is a candidate: the stream driver takes it over", number, read_model)
    began_s = said_s = refused_s = time.monotonic()
    while True:
        query = query_status(settings, read_model, number)
        if query is not None and query.phase == REAL_TIME:
            LOG.info("the stream driver (pid %d) folds it in real time", query.driver_pid)
            return
        now_s = time.monotonic()
        if query is None or query.phase != REFUSED:
            refused_s = now_s
        elif now_s - refused_s > REFUSED_FOR_S:
            raise QueryRefusedError(f"The stream driver refuses the candidate: {query.last_error}")
        if now_s - began_s > settings.rebuild.hydrate_timeout_s:
            raise StageTimeoutError(
                f"The stream driver did not fold v{number} of {read_model} in real time within "
                f"{settings.rebuild.hydrate_timeout_s} s: {_said(query)}. `./foldlake logs stream` says more."
            )
        if now_s - said_s >= LOG_INTERVAL_S:
            said_s = now_s
            _still_wanted(settings, read_model, number)
            LOG.info(
                "progress: hand over of %s v%d: %.0f s, %s", read_model, number, now_s - began_s, _said(query)
            )
        time.sleep(POLL_INTERVAL_S)


def _make_candidate(settings: Settings, read_model: str, number: int) -> None:
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        version = record_of(registry, read_model).version(number)
        if version is None or version.stage is not Stage.BUILDING:
            # Handed over at an earlier try (the driver has the lock by now), or not to be handed over.
            change(registry, read_model, partial(hand_over, number=number))
            return
        # Under the lock: a catch-up that begins later finds a candidate, and leaves it alone.
        with version_lock(settings, read_model, number, wait_s=LOCK_WAIT_S):
            change(registry, read_model, partial(hand_over, number=number))


def _still_wanted(settings: Settings, read_model: str, number: int) -> None:
    with VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor) as registry:
        require_not_ended(record_of(registry, read_model), number)


def _said(query: QueryStatus | None) -> str:
    if query is None:
        return "the stream driver says nothing of it (is it running?)"
    return f"its query is {query.phase}" + (f" ({query.last_error})" if query.last_error else "")
