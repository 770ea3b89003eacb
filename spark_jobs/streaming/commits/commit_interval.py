"""Decides how often a query commits: at the set interval, rarely while few events arrive, or not at all while it waits for events.

A commit takes a fifth of a second of processor time, with events or without, and a fold polls all the time. Spark fixes the interval when a
query starts, so that another interval needs a restart, and so does the first event for which a query has waited: half a second of processor
time, and the event is folded a second later. A query therefore changes only after several intervals, and later if it was soon restarted again.
"""

import time
from enum import Enum

from spark_jobs.streaming.query_spec import QuerySpec

# The number of events that a query repeats at most after a kill, if they arrived while it committed rarely.
MOST_REPEATED = 12_000
# For how many set intervals a query has no events before it waits, or few before it commits rarely: at first, and at most.
FIRST_HOLD, LONGEST_HOLD = 5, 80
# How long too many events wait for a commit until a query returns to the set interval: as a share of that.
RETURN_AFTER = 0.5
# A query that was not observed for so long, for example while it caught up, may have had events meanwhile.
UNOBSERVED_S = 30.0


class Change(Enum):
    """How the commits of a query have to change."""

    WAIT = "wait for events, without commits"
    RARELY = "commit rarely"
    AS_SET = "commit at the set interval"


class CommitInterval:
    """The interval of one query.

    may_wait: whether the query waits for events if it has none to read when it starts. is_long: whether it commits rarely, at its next start
    or already.
    """

    def __init__(self, spec: QuerySpec) -> None:
        triggers = spec.triggers
        self.is_long = False
        self._set_s = triggers.real_time_interval_s
        self._idle_s = triggers.idle_interval_s
        allowed = -1 if spec.idle_events is None else spec.idle_events
        self._allowed = min(allowed, triggers.catch_up_threshold_events)
        self._may_change = self._allowed >= 0 and self._idle_s > self._set_s
        self.may_wait, self._has_waited = self._may_change, False
        self._hold_s = FIRST_HOLD * self._set_s
        self._began_s = self._since_s = self._quiet_since_s = self._observed_s = time.monotonic()

    @property
    def seconds(self) -> int:
        """The interval."""
        return self._idle_s if self.is_long else self._set_s

    def reset(self) -> None:
        """Use the set interval after a failure."""
        self._begin(is_long=False)

    def begin(self, lag_events: int, events_per_s: float | None) -> None:
        """Choose the first interval of a query that has committed before: the long one if it may leave events uncommitted, and few arrive.

        One that has waited commits soon, so that it can wait again. events_per_s: how fast the source grows; None if that is not known.
        """
        if self._may_change and not self.is_long and not self._has_waited and events_per_s is not None:
            self._begin(
                is_long=lag_events + events_per_s * self._idle_s <= self._allowed / 2 and self._allowed > 0
            )

    def due_change(self, uncommitted_events: int) -> Change | None:
        """Return the change for which the query has to start again or to stop, if any. uncommitted_events: of its source, now."""
        now_s = time.monotonic()
        if not self._may_change:
            return None
        if now_s - self._observed_s > UNOBSERVED_S:
            self._since_s = self._quiet_since_s = now_s
        self._observed_s = now_s
        if uncommitted_events:
            self._quiet_since_s = now_s
        if now_s - self._quiet_since_s >= self._hold_s:
            return Change.WAIT
        return self._other_interval(uncommitted_events, now_s) if self._allowed else None

    def _other_interval(self, uncommitted_events: int, now_s: float) -> Change | None:
        if self.is_long:
            if uncommitted_events <= self._allowed:
                self._since_s = now_s
            waited_s = now_s - self._since_s
            is_due = waited_s >= RETURN_AFTER * self._set_s or uncommitted_events > MOST_REPEATED
            return Change.AS_SET if is_due else None
        # As many as the long interval may have, at this rate.
        if uncommitted_events > self._allowed / 2 * self._set_s / self._idle_s:
            self._since_s = now_s
        # A restart while nothing waits for a commit repeats nothing, and need not wait for what is still on its way.
        is_due = uncommitted_events == 0 and now_s - self._since_s >= self._hold_s
        return Change.RARELY if is_due else None

    def change(self, change: Change) -> None:
        """Change the commits from now on."""
        if change is Change.AS_SET:
            self._extend_hold()
        self.may_wait = change is Change.WAIT
        self._begin(is_long=change is Change.RARELY)

    def wake(self) -> None:
        """Commit again: the source of the query, which has waited, has events."""
        self._extend_hold()
        self.may_wait, self._has_waited = False, True
        self._begin(is_long=False)

    def _extend_hold(self) -> None:
        first_s, stayed_s = FIRST_HOLD * self._set_s, time.monotonic() - self._began_s
        self._hold_s = (
            first_s if stayed_s > self._hold_s else min(2 * self._hold_s, LONGEST_HOLD * self._set_s)
        )

    def _begin(self, *, is_long: bool) -> None:
        self.is_long = is_long
        self._began_s = self._since_s = self._quiet_since_s = time.monotonic()
