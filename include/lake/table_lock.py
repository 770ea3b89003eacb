"""The lock that a writer of `lake/<model>` holds: one at a time on this machine, whoever launched it."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from include.errors import FoldlakeError
from include.settings import Settings

# A promotion of a large table takes minutes; who waits longer had better be tried again.
LOCK_WAIT_S = 120.0
POLL_INTERVAL_S = 0.2


class LakeLockedError(FoldlakeError):
    """Another process writes to the table."""

    @classmethod
    def held(cls, model: str, path: Path, waited_s: float) -> "LakeLockedError":
        """Name the holder, as far as it is known."""
        holder = path.read_text(encoding="utf-8").strip() or "unknown"
        return cls(
            f"lake/{model} is being written by another process (pid {holder}) since {waited_s:.0f} s ago or longer, so "
            f"nothing was changed. Hint: try again when it has ended; the lock is {path}."
        )


def lock_path(settings: Settings, model: str) -> Path:
    """Return the file on which a writer of `lake/<model>` holds an exclusive `flock`."""
    return settings.home / "lake-locks" / model


@contextmanager
def lake_lock(settings: Settings, model: str) -> Iterator[None]:
    """Hold the lock of `lake/<model>`; the kernel frees it when this process ends, however that ends.

    Delta would notice a second writer by itself, but only when it commits, after all of its work.

    Raises:
        LakeLockedError: another process still held it after LOCK_WAIT_S seconds.
    """
    path = lock_path(settings, model)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        _acquire(file.fileno(), model, path, LOCK_WAIT_S)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _acquire(descriptor: int, model: str, path: Path, wait_s: float) -> None:
    deadline_s = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                raise LakeLockedError.held(model, path, wait_s) from None
            time.sleep(POLL_INTERVAL_S)
        else:
            return
