"""How tests wait: for a condition, with a deadline."""

import time
from collections.abc import Callable

import psutil
import requests

from include.errors import FoldlakeError

POLL_INTERVAL_S = 0.05
# What a server says that is not up yet or busy, and a process that has just ended.
NOT_YET = (FoldlakeError, requests.RequestException, psutil.NoSuchProcess, KeyError)


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 240.0) -> None:
    """Return once the condition holds; fail the test with `what` when it does not in time.

    A condition that cannot be asked for, because a server is away or slow, does not hold yet.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        last: Exception | None = None
        try:
            if condition():
                return
        except NOT_YET as error:
            last = error
        if time.monotonic() > deadline_s:
            raise AssertionError(f"not within {timeout_s} s: {what}") from last
        time.sleep(POLL_INTERVAL_S)
