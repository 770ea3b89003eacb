"""How a job of known size says how far it is: done of total, rate, remaining time, in one line that people and programs read."""

import logging
import re
import time
from dataclasses import dataclass

LOG = logging.getLogger("foldlake.work")
LOG_INTERVAL_S = 2.0
# What `line` writes; the command line looks for it in the logs of tasks.
PATTERN = re.compile(r"progress: .*")


@dataclass
class WorkProgress:
    """Logs the progress of one job, at most every two seconds.

    what: the job, such as "catch up of orders v2". unit: what is counted, in the plural.
    """

    what: str
    unit: str
    total: int

    def __post_init__(self) -> None:  # noqa: D105 - begins the clock
        self._began_s = time.monotonic()
        self._began_with: int | None = None
        self._said_s = float("-inf")

    def reached(self, done: int, note: str = "") -> None:
        """Say how far it is, unless that was said a moment ago; the end is always said."""
        now_s = time.monotonic()
        if self._began_with is None:
            self._began_with = done
        if done < self.total and now_s - self._said_s < LOG_INTERVAL_S:
            return
        self._said_s = now_s
        LOG.info("%s", self.line(done, now_s - self._began_s, done - self._began_with) + note)

    def line(self, done: int, elapsed_s: float, done_since: int) -> str:
        """Return the line: `done_since` were done in the last `elapsed_s` seconds."""
        share = 100 if self.total == 0 else 100 * min(done, self.total) // self.total
        text = f"progress: {self.what}: {done:,} of {self.total:,} {self.unit} ({share} %)"
        if done_since > 0 and elapsed_s > 0:
            rate = done_since / elapsed_s
            text += f", {rate:,.0f}/s"
            if done < self.total:
                text += f", {(self.total - done) / rate:,.0f} s left"
        return text
