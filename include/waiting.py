"""Waiting for a condition and retrying a call, each with a deadline. Standard library only."""

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
    """Call `look` until it returns something other than None or False, and return that; return None after the timeout.

    Args:
        look: called at once, then every `poll_s` seconds, for the last time after the timeout. An exception that it
            raises ends the wait.
        timeout_s: how long to wait.
        poll_s: pause between two calls.
        while_waiting: called with the seconds waited so far, every `log_interval_s` seconds, to log a line or to raise
            an exception when waiting has become pointless.
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


def retry(
    call: Callable[[], T], *, retryable: Callable[[Exception], bool], timeout_s: float, poll_s: float
) -> T:
    """Return what `call` returns, calling it again while it raises an exception that `retryable` accepts.

    Args:
        call: called at once, then every `poll_s` seconds, for the last time after the timeout.
        retryable: whether another call may succeed; any other exception is raised at once.
        timeout_s: after this time the last exception is raised.
        poll_s: pause between two calls.
    """
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            return call()
        except Exception as error:
            if not retryable(error) or time.monotonic() >= deadline_s:
                raise
        time.sleep(poll_s)
