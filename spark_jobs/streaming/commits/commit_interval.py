"""Decides how often a query in real-time mode commits: at the set interval, or rarely while its source has no new events.

A commit takes a fifth of a second of processor time, with events or without. Spark fixes the interval when a query starts, so that another
interval needs a restart: half a second of processor time, and events that arrive meanwhile are folded a second later. A query is therefore
restarted only after it has been idle for several intervals, and for longer if it was soon restarted again.
"""

import time

from spark_jobs.streaming.query_spec import QuerySpec

# The number of events that a query repeats at most after a kill, if they arrived while it committed rarely.
MOST_REPEATED = 12_000
# For how many set intervals a query is idle before it commits rarely: at first, and at most.
FIRST_HOLD, LONGEST_HOLD = 5, 80
# How long events wait until a query that commits rarely returns to the set interval: as a share of that, and at most. A fold whose next commit is
# later than COMMIT_S (include/stream/folded_offsets.py) after the set interval is taken for one that has stalled.
RETURN_AFTER, RETURN_AFTER_S = 0.5, 30.0
# A query that was not observed for so long, for example while it ran in batches, may have had events meanwhile.
UNOBSERVED_S = 30.0


class CommitInterval:
    """The interval of one query.

    is_long: whether the query commits rarely, at its next start or already.
    """

    def __init__(self, spec: QuerySpec) -> None:
        triggers = spec.triggers
        self.is_long = False
        self._set_s = triggers.real_time_interval_s
        self._idle_s = triggers.idle_interval_s
        allowed = -1 if spec.idle_events is None else spec.idle_events
        self._allowed = min(allowed, triggers.catch_up_threshold_events)
        self._may_change = self._allowed >= 0 and self._idle_s > self._set_s
        self._return_after_s = min(RETURN_AFTER * self._set_s, RETURN_AFTER_S)
        self._hold_s = FIRST_HOLD * self._set_s
        self._began_s = self._since_s = self._observed_s = time.monotonic()

    @property
    def seconds(self) -> int:
        """The interval."""
        return self._idle_s if self.is_long else self._set_s

    def reset(self) -> None:
        """Use the set interval after a failure."""
        self._set(is_long=False)

    def begin(self, lag_events: int, events_per_s: float | None) -> None:
        """Choose the first interval of a query that has committed before: the long one if it may leave events uncommitted, and few arrive.

        events_per_s: how fast the source grows; None if that is not known.
        """
        if self._may_change and not self.is_long and events_per_s is not None:
            self._set(
                is_long=lag_events + events_per_s * self._idle_s <= self._allowed / 2 and self._allowed > 0
            )

    def must_change(self, uncommitted_events: int) -> bool:
        """Return whether the query has to start again with the other interval. uncommitted_events: of its source, now."""
        now_s = time.monotonic()
        if not self._may_change:
            return False
        if now_s - self._observed_s > UNOBSERVED_S:
            self._since_s = now_s
        self._observed_s = now_s
        if self.is_long:
            if uncommitted_events <= self._allowed:
                self._since_s = now_s
            waited_s = now_s - self._since_s
            return waited_s >= self._return_after_s or uncommitted_events > MOST_REPEATED
        # As many as the long interval may have, at this rate.
        if uncommitted_events > self._allowed / 2 * self._set_s / self._idle_s:
            self._since_s = now_s
        # A restart while nothing waits for a commit repeats nothing, and need not wait for what is still on its way.
        return uncommitted_events == 0 and now_s - self._since_s >= self._hold_s

    def change(self) -> None:
        """Use the other interval from now on."""
        if self.is_long:
            first_s, stayed_s = FIRST_HOLD * self._set_s, time.monotonic() - self._began_s
            self._hold_s = (
                first_s if stayed_s > self._hold_s else min(2 * self._hold_s, LONGEST_HOLD * self._set_s)
            )
        self._set(is_long=not self.is_long)

    def _set(self, *, is_long: bool) -> None:
        self.is_long = is_long
        self._began_s = self._since_s = time.monotonic()
