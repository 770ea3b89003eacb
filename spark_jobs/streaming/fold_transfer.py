"""How a driver passes its folds to a new one, one after the other, so that each pauses only while a single query starts.

The present driver stops a fold when the next run repeats few events, and releases its lock. The new driver, which waits for the lock, starts
the fold. Folds that wait for events have only their locks to pass, all at once. All other queries follow together: their outputs may still arrive until the present driver's JVM has ended.
"""

import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path

from include.files import is_locked
from include.position import Offsets
from include.stream import query_transfer
from include.stream.query_reports import Phase
from include.stream.query_transfer import QueryTransfer
from spark_jobs.streaming.supervised_query import QueryFailedError, SupervisedQuery

LOG = logging.getLogger(__name__)

# Folded in a fraction of a second: a fold is stopped while it has no more to repeat, or soon after a commit.
FEW_EVENTS = 2_000
# A commit holds the events up: with a stop right after it, the standstill was half a second to a second longer.
AFTER_COMMIT_S = 3.0
# After this time, the remaining folds are passed at any moment. Longer than the default interval of commits.
PATIENCE_S = 75.0
# The new driver starts a fold within milliseconds, unless it has no such query.
TAKE_TIMEOUT_S = 5.0
# How long a fold needs every core after its start.
SETTLING_S = 2.0
UNUSABLE = frozenset({Phase.FAILED, Phase.REFUSED})


class FoldGiver:
    """The present driver's side."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pid = os.getppid()
        self._transfer: QueryTransfer | None = None
        self._passed: list[str] = []
        self._given: list[SupervisedQuery] = []
        self._settling_s = self._next_at_s = 0.0
        self._impatient_at_s: float | None = None
        self._committed: dict[str, Offsets] = {}
        # When to pass a fold that has committed.
        self._due_s: dict[str, float] = {}

    def is_under_way(self) -> bool:
        """Whether folds are to be passed now; otherwise, the driver starts those again that it has passed."""
        transfer = query_transfer.read(self._home)
        if transfer is not None and transfer.from_pid != self._pid:
            transfer = None
        if transfer != self._transfer:
            self._transfer, self._given, self._impatient_at_s = transfer, [], None
            self._passed.clear()
            self._committed.clear()
            self._due_s.clear()
        return transfer is not None

    def is_own(self, query: SupervisedQuery) -> bool:
        """Whether this driver still runs the query."""
        return query.spec.lock is None or query.name not in self._passed

    def step(self, queries: Iterable[SupervisedQuery]) -> bool:
        """Pass a fold if the time has come; return whether all are passed."""
        now_s = time.monotonic()
        if self._impatient_at_s is None:
            self._impatient_at_s = now_s + PATIENCE_S
        if free := [query.name for query in self._given if _is_free(query)]:
            if now_s < self._next_at_s:
                return False
            LOG.warning("not taken over: fold %s", ", ".join(free))
        elif self._given:
            self._next_at_s = now_s + self._settling_s
        self._given = []
        if now_s < self._next_at_s:
            return False
        held = [query for query in queries if query.spec.lock is not None and self.is_own(query)]
        if self._transfer is not None:
            self._pass(self._due(held, is_impatient=now_s >= self._impatient_at_s), self._transfer)
        return not held

    def _due(self, held: list[SupervisedQuery], *, is_impatient: bool) -> list[SupervisedQuery]:
        """Return the folds to pass now: all that wait for events, or one that runs."""
        if waiting := [query for query in held if query.phase is Phase.WAITING]:
            self._settling_s = 0.0
            return waiting
        self._settling_s = SETTLING_S
        due = next((query for query in held if is_impatient or self._repeats_little(query)), None)
        return [] if due is None else [due]

    def _pass(self, queries: list[SupervisedQuery], transfer: QueryTransfer) -> None:
        if not queries:
            return
        names = [query.name for query in queries]
        LOG.info("passing fold %s", ", ".join(names))
        for query in queries:
            query.release()
        try:
            query_transfer.list_passed(self._home, transfer, [*self._passed, *names])
        except OSError as error:
            # They start here again.
            LOG.warning("fold %s cannot be passed: %s", ", ".join(names), error)
            return
        self._passed += names
        self._given, self._next_at_s = queries, time.monotonic() + TAKE_TIMEOUT_S

    def _repeats_little(self, query: SupervisedQuery) -> bool:
        """Whether the query has committed a moment ago, or has read few events since."""
        try:
            behind = query.events_behind()
        except Exception as error:  # noqa: BLE001 - Kafka or a file system is unavailable: the fold goes on here
            LOG.warning("how far fold %s is could not be read: %s", query.name, error)
            return False
        before = self._committed.setdefault(query.name, query.checkpoint.offsets)
        if before != query.checkpoint.offsets:
            # The first commit counts: batches commit every second.
            self._due_s.setdefault(query.name, time.monotonic() + AFTER_COMMIT_S)
        due_s = self._due_s.get(query.name)
        return behind <= FEW_EVENTS if due_s is None else time.monotonic() >= due_s


class FoldTaker:
    """The new driver's side."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._pid = os.getppid()
        self._passed: frozenset[str] = frozenset()

    def is_under_way(self) -> bool:
        """Whether folds are passed to this driver now."""
        transfer = query_transfer.read(self._home)
        if transfer is None or transfer.to_pid != self._pid:
            return False
        self._passed = query_transfer.passed(self._home, transfer)
        return True

    def is_own(self, query: SupervisedQuery) -> bool:
        """Whether the query is passed to this driver."""
        return query.name in self._passed

    def require_no_failure(self, queries: Iterable[SupervisedQuery]) -> None:
        """Raise QueryFailedError if an essential fold cannot be started: the present driver then takes all folds back."""
        for query in queries:
            if self.is_own(query) and query.is_essential and query.phase in UNUSABLE:
                raise QueryFailedError(f"query {query.name}: {query.last_error}")


def _is_free(query: SupervisedQuery) -> bool:
    return query.spec.lock is not None and not is_locked(query.spec.lock)
