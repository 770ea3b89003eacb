"""Atomic replacement and locks for files that several processes share. Standard library only."""

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from include.waiting import wait_for

POLL_INTERVAL_S = 0.2
# The disk, or the user's share of it, is full.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
# Everything in FOLDLAKE_HOME belongs to one user: events, schemas, logs, the password of Airflow.
PRIVATE_UMASK = 0o077
PRIVATE_FILE = 0o600
# Tables in a folder that the user chose may be for other users as well.
SHARED_UMASK = 0o022


@contextmanager
def private_umask() -> Iterator[None]:
    """Create files and folders for this user alone, in a block. The umask is that of the whole process."""
    with _umask(PRIVATE_UMASK):
        yield


@contextmanager
def shared_umask() -> Iterator[None]:
    """Create files and folders that other users can read, in a block. The umask is that of the whole process."""
    with _umask(SHARED_UMASK):
        yield


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    previous = os.umask(mask)
    try:
        yield
    finally:
        os.umask(previous)


def write_atomically(path: Path, content: bytes | str, mode: int | None = None) -> None:
    """Replace a file atomically, and create its folder if necessary: readers see the old content or the new content.

    The new content survives if the process is killed. It is not flushed to disk: after a machine crash, the file may have the old
    content. `mode`: the file's permissions; None: those of the umask.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    data = content.encode() if isinstance(content, str) else content
    try:
        if mode is not None:
            new.touch(mode)
        new.write_bytes(data)
        new.replace(path)
    finally:
        with suppress(FileNotFoundError):
            new.unlink()


def write_without_space(path: Path, content: bytes, *, reserve: int, mode: int | None = None) -> None:
    """Replace a file atomically; when its disk is full, overwrite it in place instead, for which it needs no more space.

    The file is padded with spaces to a multiple of `reserve` bytes, so that later content fits. A reader can see a file that is
    overwritten in place half written: the content must be less than a disk's sector, or contain a checksum. `mode` as for
    `write_atomically`.
    Raises OSError when the disk is full and the file does not exist or is too short.
    """
    padded = content.ljust(-(-len(content) // reserve) * reserve)
    try:
        write_atomically(path, padded, mode)
    except OSError as error:
        if error.errno not in NO_SPACE or _size(path) < len(padded):
            raise
        with path.open("r+b", buffering=0) as file:
            # Spaces over what is left of longer content.
            file.write(padded.ljust(_size(path)))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class FileLockedError(Exception):
    """Another process holds the lock; `holder` is the note in the file, usually the holder's process id."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(f"{path} is locked by {holder or 'another process'}")
        self.path = path
        self.holder = holder


class FileLock:
    """An exclusive lock on a file. The kernel releases it when its holder ends, even if it is killed.

    This class uses `flock(2)` instead of the library `filelock`, because some holders `exec` another program and keep the
    lock, and because the launcher takes a lock before any library is installed.

    Args:
        path: the lock file, which is not deleted on release. Its content names the holder.
        survives_exec: whether programs that this process executes (`exec`), or starts with inherited file
            descriptors, inherit the lock. It is then released when the last of these processes ends.
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
        """Take the lock if it is free, and write `note` (by default the process id) into the file; do not wait."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        with suppress(OSError):  # the lock is valid without its note, for which a full disk has no space
            os.truncate(descriptor, os.write(descriptor, (note or str(os.getpid())).encode()))
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
    """Return the holder's note from a lock file; empty when the file cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def is_locked(path: Path) -> bool:
    """Return whether any process holds the lock of a file; False if the file does not exist."""
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

    Raises FileLockedError, or the exception that `error` returns for it, when the lock is not released within `wait_s` seconds.
    Calls `while_waiting` every few seconds with the seconds waited so far, for a log line.
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
