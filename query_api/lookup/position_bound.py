"""The caller's bound on the age of an answer, and the lookups that wait for a record to reach it.

The bound is the parameter `minOffset`, an offset that a command has returned. Each commit wakes the waiting lookups, and one thread waits
for the commits of all.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from include.position import parse_offset
from query_api.lookup.client_slots import ClientSlots
from query_api.store.commit_signal import CommitWatch

# How long a lookup waits for a record to reach its bound.
MAX_WAIT_S = 1.0
# Commits within this time wake the lookups once: each of them reads its key again.
WAKE_INTERVAL_S = 0.002
# How soon a store that does not exist yet is looked for again.
RETRY_S = 0.05
# How long the thread waits for a commit before it checks whether a lookup still waits.
IDLE_CHECK_S = 1.0
T = TypeVar("T")


@dataclass(frozen=True)
class PositionBound:
    """The event at this offset of the key's source partition must be folded into the answer.

    All events of a key are in one partition and are folded in order, so the offset in the key's own record is
    sufficient (docs/decisions/0006).
    client: the address that the request came from, which limits how many of its lookups wait.
    """

    min_offset: int
    client: str = ""

    def is_met_by(self, source_offset: int) -> bool:
        """Whether a record with this offset includes the event. Called by every lookup, so it creates no `Position`."""
        return source_offset >= self.min_offset

    @classmethod
    def parse(cls, text: str | None, client: str = "") -> "PositionBound | None":
        """Read a bound from a request; None or empty is no bound. Raises ValueError."""
        if not text:
            return None
        try:
            return cls(parse_offset(text), client)
        except ValueError as error:
            message = f"minOffset must be a whole number, 0 or more; it is {text[:40]!r}."
            raise ValueError(message) from error


class CommitWait:
    """The waiting lookups of one worker process. Thread-safe."""

    def __init__(self, slots: ClientSlots) -> None:
        self._slots = slots
        self._watch: CommitWatch | None = None
        self._woken = threading.Condition()
        self._is_needed = threading.Event()
        self._waiting = 0
        # Store -> how often it has changed while a lookup waited.
        self._changes: dict[Path, int] = {}

    def first(
        self, store: Path, client: str, read: Callable[[], T], is_met: Callable[[T], bool], timeout_s: float
    ) -> T:
        """Return the first result of `read` that `is_met` accepts, or the last one after the timeout.

        `read` is called at once, and after each commit to the store in this directory. Raises NoFreeSlotError, and what `read`
        raises.
        """
        deadline = time.monotonic() + timeout_s
        with self._slots.slot(client):
            watch = self._begin()
            try:
                while True:
                    # In this order, so that no commit is missed between the reading and the waiting.
                    is_watched = watch.add(store)
                    seen = self._changes.get(store, 0)
                    found = read()
                    left_s = deadline - time.monotonic()
                    if is_met(found) or left_s <= 0:
                        return found
                    self._wait(store, seen, left_s if is_watched else min(left_s, RETRY_S))
            finally:
                self._end()

    def _wait(self, store: Path, seen: int, timeout_s: float) -> None:
        with self._woken:
            self._woken.wait_for(lambda: self._changes.get(store, 0) != seen, timeout_s)

    def _begin(self) -> CommitWatch:
        with self._woken:
            self._waiting += 1
            self._is_needed.set()
            if self._watch is None:
                self._watch = CommitWatch()
                threading.Thread(target=self._run, args=(self._watch,), name="commits", daemon=True).start()
            return self._watch

    def _end(self) -> None:
        with self._woken:
            self._waiting -= 1
            if not self._waiting:
                self._is_needed.clear()

    def _run(self, watch: CommitWatch) -> None:
        while True:
            self._is_needed.wait()
            changed = watch.next(IDLE_CHECK_S)
            if not changed:
                continue
            with self._woken:
                for store in changed:
                    self._changes[store] = self._changes.get(store, 0) + 1
                self._woken.notify_all()
            time.sleep(WAKE_INTERVAL_S)
