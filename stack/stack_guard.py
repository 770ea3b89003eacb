"""Stops a stack once whoever started it is gone, however it went: for stacks that must not outlive a test run.

Reads standard input, a pipe whose other end its starter holds: the kernel closes that end even when the starter is
killed.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from include.settings import CHECKOUT, Settings
from stack.lifecycle import BusyError, stop
from stack.settings_environment import settings_environment

RETRY_S = 0.5
# Longer than any start takes.
GIVE_UP_S = 600.0


@contextmanager
def guarded(settings: Settings) -> Iterator[None]:
    """Stop the settings' stack when the block ends, or when this process does."""
    guard = subprocess.Popen(
        [sys.executable, "-m", "stack.stack_guard"],
        stdin=subprocess.PIPE,
        # A session of its own, so that what kills the starter's process group spares it.
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
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        try:
            stop(Settings())
        except BusyError:
            # A start in another process, which may outlive the one that is gone by a moment.
            if time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
        else:
            return


if __name__ == "__main__":
    main()
