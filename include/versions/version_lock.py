"""Who may write a version's checkpoint: whoever holds its lock, a rebuild's catch-up or the stream driver.

The kernel releases the lock when its holder ends, however that happens. One machine: the stream driver runs where Airflow's
scheduler runs, and so do the rebuild's tasks.
"""

import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from include.errors import FoldlakeError
from include.settings import Settings

LOG = logging.getLogger(__name__)
POLL_INTERVAL_S = 0.2
LOG_INTERVAL_S = 5.0


class VersionLockedError(FoldlakeError):
    """Somebody else writes this version's checkpoint."""


def lock_path(settings: Settings, read_model: str, number: int) -> Path:
    """Return the file that the one writer of a version holds an exclusive `flock` on."""
    return settings.home / "version-locks" / read_model / f"v{number}.lock"


def acquire(settings: Settings, read_model: str, number: int, *, wait_s: float) -> int:
    """Take a version's lock; returns the file descriptor that holds it until it is closed.

    Raises VersionLockedError when somebody else held it for all of `wait_s`.
    """
    path = lock_path(settings, read_model, number)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    began_s = said_s = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now_s = time.monotonic()
            if now_s - began_s >= wait_s:
                os.close(descriptor)
                raise VersionLockedError(
                    f"v{number} of {read_model} is still being written after {wait_s:.0f} s: the lock {path} is held by a "
                    "catch-up or by the stream driver. The next try succeeds once that has ended."
                ) from None
            if now_s - said_s >= LOG_INTERVAL_S:
                said_s = now_s
                LOG.info(
                    "waiting for whoever writes %s v%d to end: %.0f s", read_model, number, now_s - began_s
                )
            time.sleep(POLL_INTERVAL_S)
        else:
            return descriptor


@contextmanager
def version_lock(settings: Settings, read_model: str, number: int, *, wait_s: float) -> Iterator[None]:
    """Hold a version's lock for a block of code; raises VersionLockedError."""
    descriptor = acquire(settings, read_model, number, wait_s=wait_s)
    try:
        yield
    finally:
        os.close(descriptor)
