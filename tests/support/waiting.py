"""Waits for a condition with a deadline, for tests."""

from collections.abc import Callable

import httpx
import psutil

from include.errors import FoldlakeError
from include.waiting import wait_for

POLL_INTERVAL_S = 0.1
# Raised while a server is unavailable or busy, and for a process that has just exited.
NOT_YET = (FoldlakeError, httpx.HTTPError, psutil.NoSuchProcess, KeyError)


def wait_until(
    condition: Callable[[], object], what: str, timeout_s: float = 240.0, poll_s: float = POLL_INTERVAL_S
) -> None:
    """Return once the condition holds; fail the test with `what` if it does not hold in time.

    A condition that raises because a server is unavailable or slow does not hold yet. Increase `poll_s` for a condition that
    loads the server as much as the work it waits for.
    """
    last: list[Exception] = []

    def holds() -> bool:
        last.clear()
        try:
            return bool(condition())
        except NOT_YET as error:
            last.append(error)
            return False

    if not wait_for(holds, timeout_s=timeout_s, poll_s=poll_s):
        raise AssertionError(f"not within {timeout_s} s: {what}") from next(iter(last), None)
