"""Progress of a job of known size, logged as one line for people and programs: done of total, rate, remaining time."""

import logging
import re
import time
from dataclasses import dataclass

LOG = logging.getLogger("foldlake.work")
LOG_INTERVAL_S = 2.0
# Matches what `line` returns; the command line searches the logs of tasks for it.
PATTERN = re.compile(r"progress: .*")


@dataclass
class WorkProgress:
    """Logs the progress of one job, at most every two seconds.

    what: the job, such as "catch up of balance v2".
    unit: the noun for what is counted, in the plural.
    """

    what: str
    unit: str
    total: int

    def __post_init__(self) -> None:  # noqa: D105 - starts the clock
        self._began_s = time.monotonic()
        self._done_at_start: int | None = None
        self._logged_s = float("-inf")

    def reached(self, done: int, note: str = "") -> None:
        """Log the progress, at most every LOG_INTERVAL_S; the end is always logged."""
        now_s = time.monotonic()
        if self._done_at_start is None:
            self._done_at_start = done
        if done < self.total and now_s - self._logged_s < LOG_INTERVAL_S:
            return
        self._logged_s = now_s
        LOG.info("%s", self.line(done, now_s - self._began_s, done - self._done_at_start) + note)

    def line(self, done: int, elapsed_s: float, done_since: int) -> str:
        """Return the line; `done_since` is the number done in the last `elapsed_s` seconds, for the rate."""
        share = 100 if self.total == 0 else 100 * min(done, self.total) // self.total
        text = f"progress: {self.what}: {done:,} of {self.total:,} {self.unit} ({share} %)"
        if done_since > 0 and elapsed_s > 0:
            rate = done_since / elapsed_s
            text += f", {rate:,.0f}/s"
            if done < self.total:
                text += f", {(self.total - done) / rate:,.0f} s left"
        return text
