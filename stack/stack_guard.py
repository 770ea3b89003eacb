"""Stops a stack when the process that started it ends: for stacks that must not outlive a test run.

The guard reads its standard input, a pipe whose other end is open in that process: the kernel closes it even when
the process is killed.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from include.settings import CHECKOUT, Settings, settings_environment
from include.waiting import retry
from stack.lifecycle import BusyError, stop

RETRY_INTERVAL_S = 0.5
# Longer than any start.
RETRY_TIMEOUT_S = 600.0


@contextmanager
def guarded(settings: Settings) -> Iterator[None]:
    """Stop the stack of these settings when the block or this process ends."""
    guard = subprocess.Popen(
        [sys.executable, "-m", "stack.stack_guard"],
        stdin=subprocess.PIPE,
        # A separate session: a signal to this process's group does not reach the guard.
        start_new_session=True,
        env={**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT)},
        cwd=CHECKOUT,
    )
    try:
        yield
    finally:
        if guard.stdin:
            guard.stdin.close()
        guard.wait()


def main() -> None:
    """Wait for the end of standard input, then stop the stack."""
    sys.stdin.read()
    retry(
        lambda: stop(Settings()),
        # A start in a child of the ended process may hold the lock a little longer.
        retryable=lambda error: isinstance(error, BusyError),
        timeout_s=RETRY_TIMEOUT_S,
        poll_s=RETRY_INTERVAL_S,
    )


if __name__ == "__main__":
    main()
