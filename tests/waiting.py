"""How tests wait: for a condition, with a deadline."""

import time
from collections.abc import Callable

POLL_INTERVAL_S = 0.05


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 240.0) -> None:
    """Return once the condition holds; fail the test with `what` when it does not in time."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {timeout_s} s: {what}"
        time.sleep(POLL_INTERVAL_S)
