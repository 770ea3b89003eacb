"""Files that several processes share: replaced as a whole, and locked by one process at a time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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

    `flock(2)`, and not the library `filelock`: some holders become another program by `exec` and keep the lock
    (`survives_exec`), and the file says who holds it, for the one who waits. One class serves both.
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

    def acquire(self, *, wait_s: float, note: str = "") -> None:
        """Take the lock, waiting up to `wait_s` seconds; raises FileLockedError."""
        deadline_s = time.monotonic() + wait_s
        while not self.try_acquire(note):
            if time.monotonic() >= deadline_s:
                raise FileLockedError(self.path, holder_of(self.path))
            time.sleep(POLL_INTERVAL_S)

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


@contextmanager
def file_lock(path: Path, *, wait_s: float = 0.0, note: str = "") -> Iterator[None]:
    """Hold the lock of a file for a block of code; raises FileLockedError."""
    lock = FileLock(path)
    lock.acquire(wait_s=wait_s, note=note)
    try:
        yield
    finally:
        lock.release()
