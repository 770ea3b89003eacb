"""Ends the materializer when the wall clock is set back: the Kafka client's waits end at a time of the wall clock.

librdkafka waits with pthread_cond_timedwait(3) until a time of CLOCK_REALTIME. After the clock was set back by an hour, a wait of
100 ms can last an hour, and the client neither sends heartbeats nor reads. A new process has no such waits. A clock that is set
forward only ends waits early.
"""

import logging
import os
import time
from collections.abc import Callable

from include.boot_clock import boot_s

# Less than the time in which a node is expected to answer the group. Corrections of a running clock are slower than this.
SET_BACK_S = 2.0
EXIT_STATUS = 1

log = logging.getLogger(__name__)


class ClockWatch:
    """Compares the wall clock with the boot clock. The materializer's loop calls `step` about once a second."""

    def __init__(self, end_process: Callable[[int], object] = os._exit) -> None:
        """Watch; `end_process` ends this process at once: closing the Kafka clients would wait for the same clock."""
        self._end_process = end_process
        self._difference_s = _difference_s()

    def step(self) -> None:
        """End the process if the wall clock was set back since the last call; a supervisor starts it again."""
        difference_s = _difference_s()
        set_back_s, self._difference_s = self._difference_s - difference_s, difference_s
        if set_back_s > SET_BACK_S:
            log.error(
                "the clock was set back by %.0f s: ending, so that the Kafka client's waits begin again",
                set_back_s,
            )
            self._end_process(EXIT_STATUS)


def _difference_s() -> float:
    return time.time() - boot_s()
