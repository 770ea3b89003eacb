"""Files that several processes share: replaced as a whole, and locked by one process at a time. Standard library only."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from include.waiting import wait_for

POLL_INTERVAL_S = 0.2


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace a file, and create its folder where there is none: readers see the old content or the new one, whole.

    The content survives a killed process. It is not flushed to the disk, so a machine that goes down may leave the old one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    data = content.encode() if isinstance(content, str) else content
    try:
        new.write_bytes(data)
        new.replace(path)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()


class FileLockedError(Exception):
    """Another process holds the lock; `holder` is what it wrote into the file, in most cases its process id."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is locked by {holder or 'another process'}")
        self.path = path
        self.holder = holder


class FileLock:
    """An exclusive lock on a file. The kernel releases it when its holder ends, however that happens.

    `flock(2)`, and not the library `filelock`: some holders become another program by `exec` and keep the lock, and
    the launcher locks before any library is installed.

    Args:
        path: the file, which stays when the lock is released. Its content names the holder.
        survives_exec: whether a program that this process becomes by `exec`, or starts with inherited file
            descriptors, holds the lock too. It is then released when the last of these processes ends.
    """

    def __init__(self, path: Path, *, survives_exec: bool = False) -> None:
        self.path = path
        self._survives_exec = survives_exec
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def try_acquire(self, note: str = "") -> bool:
        """Take the lock unless another process holds it; writes `note` (by default the process id) into the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.truncate(descriptor, 0)
        os.write(descriptor, (note or str(os.getpid())).encode())
        os.set_inheritable(descriptor, self._survives_exec)
        self._descriptor = descriptor
        return True

    def acquire(
        self, *, wait_s: float, note: str = "", while_waiting: Callable[[float], None] | None = None
    ) -> None:
        """Take the lock, waiting up to `wait_s` seconds; raises FileLockedError. `while_waiting` as for `file_lock`."""
        if not wait_for(
            lambda: self.try_acquire(note),
            timeout_s=wait_s,
            poll_s=POLL_INTERVAL_S,
            while_waiting=while_waiting,
        ):
            raise FileLockedError(self.path, holder_of(self.path))

    def release(self) -> None:
        """Release the lock; does nothing when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def holder_of(path: Path) -> str:
    """Return what the holder of a lock wrote into its file; empty when nothing can be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def is_locked(path: Path) -> bool:
    """Whether any process holds the lock of a file; False where there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def file_lock(
    path: Path,
    *,
    wait_s: float = 0.0,
    note: str = "",
    error: Callable[[FileLockedError], Exception] = lambda locked: locked,
    while_waiting: Callable[[float], None] | None = None,
) -> Iterator[None]:
    """Hold the lock of a file for a block of code.

    Raises FileLockedError, or what `error` makes of it, when another process holds the lock for all of `wait_s`.
    `while_waiting` is called with the seconds waited so far, every few seconds, for a log line.
    """
    lock = FileLock(path)
    try:
        lock.acquire(wait_s=wait_s, note=note, while_waiting=while_waiting)
    except FileLockedError as locked:
        raise error(locked) from None
    try:
        yield
    finally:
        lock.release()
