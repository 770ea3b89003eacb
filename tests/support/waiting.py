"""Waits for a condition with a deadline, for tests."""

import time
from collections.abc import Callable

import httpx
import psutil

from include.errors import FoldlakeError
from include.waiting import wait_for

POLL_INTERVAL_S = 0.1
# A condition that reads a topic takes the processor time of what it waits for: its pauses are this many times as long as it takes.
PAUSES_PER_LOOK, LONGEST_PAUSE_S = 4, 1.0
# Raised while a server is unavailable or busy, and for a process that has just exited.
NOT_YET = (FoldlakeError, httpx.HTTPError, psutil.NoSuchProcess, KeyError)


def wait_until(
    condition: Callable[[], object], what: str, timeout_s: float = 240.0, poll_s: float | None = None
) -> None:
    """Return once the condition holds; fail the test with `what` if it does not hold in time.

    A condition that raises because a server is unavailable or slow does not hold yet. Set `poll_s` for a condition that loads the server
    as much as the work it waits for, or that does some of the work; by default, a condition that takes long has long pauses.
    """
    last: list[Exception] = []

    def holds() -> bool:
        last.clear()
        began_s = time.monotonic()
        try:
            if condition():
                return True
        except NOT_YET as error:
            last.append(error)
        if poll_s is None:
            pause_s = min(LONGEST_PAUSE_S, PAUSES_PER_LOOK * (time.monotonic() - began_s))
            time.sleep(max(0.0, pause_s - POLL_INTERVAL_S))
        return False

    if not wait_for(holds, timeout_s=timeout_s, poll_s=POLL_INTERVAL_S if poll_s is None else poll_s):
        raise AssertionError(f"not within {timeout_s} s: {what}") from next(iter(last), None)


class MovedClock:
    """A monotonic clock in place of the module `time`; it stands until a test moves it. now_s: its time in seconds."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def monotonic(self) -> float:
        """Return the time in seconds."""
        return self.now_s
