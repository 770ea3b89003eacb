"""Waiting for something to become true: one loop for all, with a deadline and a sign of life."""

import time
from collections.abc import Callable
from typing import TypeVar

LOG_INTERVAL_S = 5.0

T = TypeVar("T")


def wait_for(
    look: Callable[[], T | None],
    *,
    timeout_s: float,
    poll_s: float,
    while_waiting: Callable[[float], None] | None = None,
    log_interval_s: float = LOG_INTERVAL_S,
) -> T | None:
    """Call `look` until it returns something other than None or False, and return that; None when the time is up.

    Args:
        look: called at once, then every `poll_s` seconds; what it raises ends the wait.
        timeout_s: how long to wait. `look` is called once more when the time is up.
        poll_s: pause between two calls.
        while_waiting: called with the seconds waited so far, every `log_interval_s` seconds: for a log line, or a check
            whether waiting is still worth it.
        log_interval_s: pause between two calls of `while_waiting`.
    """
    began_s = last_s = time.monotonic()
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        now_s = time.monotonic()
        if now_s - began_s >= timeout_s:
            return None
        if while_waiting is not None and now_s - last_s >= log_interval_s:
            last_s = now_s
            while_waiting(now_s - began_s)
        time.sleep(poll_s)
