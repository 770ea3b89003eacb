"""Progress of a job: done of total, rate, remaining time; logged as one line for people and programs, and handed on as a value."""

import logging
import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

LOG = logging.getLogger("foldlake.work")
LOG_INTERVAL_S = 2.0
# The rate is that of the last half minute: of a job that gets slower, an average over all of it promises an end too soon.
RATE_WINDOW_S = 30.0
# Before a job reads what it counts, it reads a few records of metadata: what is left is told from a hundredth on.
LEAST_TOLD_SHARE = 100
# Matches what `line` returns; the command line searches the logs of tasks for it.
PATTERN = re.compile(r"progress: .*")


@dataclass(frozen=True)
class Progress:
    """How far a job is. total: None if unknown. seconds_left: None while that cannot be told."""

    done: int
    total: int | None
    unit: str
    rate_per_s: float = 0.0
    seconds_left: float | None = None


@dataclass
class WorkProgress:
    """Logs the progress of one job, at most every two seconds.

    what: the job, such as "catch up of orders v2".
    unit: the noun for what is counted, in the plural.
    total: None if unknown.
    report: also receives the progress whenever it is logged.
    is_total_final: False if the total grows while more work is planned; the remaining time is then not shown.
    """

    what: str
    unit: str
    total: int | None
    report: Callable[[Progress], None] | None = None
    is_total_final: bool = True

    def __post_init__(self) -> None:  # noqa: D105 - starts the clock
        self._logged_s = float("-inf")
        self._samples: deque[tuple[float, int]] = deque()
        self._first: tuple[float, int] | None = None

    def reached(self, done: int, note: str = "") -> None:
        """Log the progress, at most every LOG_INTERVAL_S; the end is always logged."""
        now_s = time.monotonic()
        self._first = self._first or (now_s, done)
        is_end = self.total is not None and done >= self.total
        if not is_end and now_s - self._logged_s < LOG_INTERVAL_S:
            return
        self._logged_s = now_s
        self._samples.append((now_s, done))
        while now_s - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()
        since_s, before = self._first if is_end else self._samples[0]
        progress = self.progress(done, now_s - since_s, done - before)
        LOG.info("%s", self.line(progress) + note)
        if self.report is not None:
            self.report(progress)

    def progress(self, done: int, elapsed_s: float, done_since: int) -> Progress:
        """Return the progress; `done_since` is the number done in the last `elapsed_s` seconds, for the rate."""
        rate = done_since / elapsed_s if done_since > 0 and elapsed_s > 0 else 0.0
        left_s = None
        if self.total is not None and self.is_total_final and rate and done * LEAST_TOLD_SHARE >= self.total:
            left_s = max(0, self.total - done) / rate
        return Progress(done, self.total, self.unit, rate, left_s)

    def line(self, progress: Progress) -> str:
        """Return the progress as a line."""
        done, total = progress.done, progress.total
        text = f"progress: {self.what}: {done:,}"
        if total is not None:
            text += f" of {total:,}"
        text += f" {progress.unit}"
        if total is not None and not self.is_total_final:
            text += " planned so far"
        elif total is not None:
            text += f" ({100 if total == 0 else 100 * min(done, total) // total} %)"
        if progress.rate_per_s:
            text += f", {progress.rate_per_s:,.0f}/s"
        if progress.seconds_left is not None and total is not None and done < total:
            text += f", {progress.seconds_left:,.0f} s left"
        return text
