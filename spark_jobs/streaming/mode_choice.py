"""Decides whether a query folds in real time or in batches, from its lag.

Real time gives the lowest latency, batches the highest throughput. A query that falls behind in real time goes over to batches, and
comes back when it has kept up for a while; each time it falls behind again soon, it stays in batches for longer.
"""

import logging
import time

from include.stream.query_reports import Phase
from spark_jobs.streaming.query_spec import TriggerSettings

LOG = logging.getLogger(__name__)

# A lag above the bound for so long is not a hiccup, such as a pause of the machine.
BEHIND_S = 5.0
# The longest stay in batches, and the time in real time after which the next stay is the shortest one again, as multiples of that.
LONGEST_HOLD = 16
RECOVERED_AFTER = 10
# In batches, a lag of up to this share of the bound counts as keeping up.
KEEPING_UP = 0.5


class ModeChoice:
    """The mode of one query: `next_phase` is its mode when it starts; `must_change` says that it has to start again in the other mode."""

    def __init__(self, triggers: TriggerSettings) -> None:
        self._bound = triggers.catch_up_threshold_events
        self._in_batches = self._stays_in_batches = triggers.batches_only
        self._min_batch_time_s = triggers.min_batch_time_s
        self._hold_s = 0.0
        self._since_s = time.monotonic()
        self._behind_since_s: float | None = None

    @property
    def next_phase(self) -> Phase:
        """REAL_TIME or BATCHES: how a query starts that has caught up."""
        return Phase.BATCHES if self._in_batches else Phase.REAL_TIME

    def must_change(self, phase: Phase, lag_events: int) -> bool:
        """Return whether the query has to change to `next_phase`, given its phase and lag now."""
        if self._stays_in_batches:
            return False
        if phase is Phase.REAL_TIME:
            return self._has_fallen_behind(lag_events)
        return phase is Phase.BATCHES and self._has_kept_up(lag_events)

    def _has_fallen_behind(self, lag_events: int) -> bool:
        now_s = time.monotonic()
        if lag_events <= self._bound:
            self._behind_since_s = None
            return False
        if self._behind_since_s is None:
            self._behind_since_s = now_s
        if now_s - self._behind_since_s < BEHIND_S:
            return False
        shortest_s = self._min_batch_time_s
        if now_s - self._since_s >= RECOVERED_AFTER * shortest_s:
            self._hold_s = 0.0
        self._hold_s = min(LONGEST_HOLD * shortest_s, max(shortest_s, 2 * self._hold_s))
        self._change(in_batches=True)
        return True

    def _has_kept_up(self, lag_events: int) -> bool:
        if lag_events > self._bound * KEEPING_UP or time.monotonic() - self._since_s < self._hold_s:
            return False
        self._change(in_batches=False)
        return True

    def _change(self, *, in_batches: bool) -> None:
        self._in_batches = in_batches
        self._since_s = time.monotonic()
        self._behind_since_s = None
