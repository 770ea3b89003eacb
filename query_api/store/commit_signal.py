"""Tells the readers of a store in other processes that a commit is visible, without a message to each of them.

The writer touches the store's directory after each commit, which costs it 4 us. A reader that waits has the kernel wake it (inotify,
on Linux), so that no process polls. Where the system has no inotify, the waiting reader looks at the directory's time.
"""

import ctypes
import os
import select
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

# Events of inotify, and its structure: see inotify(7).
IN_ATTRIB = 0x4
IN_DELETE_SELF = 0x400
IN_MOVE_SELF = 0x800
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
# The watch descriptor, the mask, a cookie, and the length of the name that follows.
EVENT = struct.Struct("=iIII")
READ_BYTES = 65_536
# How often the directories' times are looked at where there is no inotify.
POLL_S = 0.005


def announce_commit(path: Path) -> None:
    """Wake the readers that wait for a commit to the store in this directory. Call it once the commit is visible."""
    # A directory that cannot be touched is being removed, and every wait has a deadline.
    with suppress(OSError):
        os.utime(path)


class CommitWatch:
    """The commits to some stores. `add` may be called by any thread, `next` by one.

    A store that is removed or replaced counts as changed, for the last time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inotify = _open_inotify()
        self._poll = select.poll()
        if self._inotify is not None:
            self._poll.register(self._inotify, select.POLLIN)
        self._paths: dict[int, Path] = {}
        self._times: dict[Path, int] = {}

    def add(self, path: Path) -> bool:
        """Watch the store in this directory from now on; return whether it exists. Repeated calls have no effect."""
        with self._lock:
            if self._inotify is None:
                changed_at = _time_of(path)
                if changed_at:
                    self._times.setdefault(path, changed_at)
                return changed_at > 0
            mask = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF
            watch: int = _libc().inotify_add_watch(self._inotify, os.fsencode(path), mask)
            if watch >= 0:
                self._paths[watch] = path
            return watch >= 0

    def next(self, timeout_s: float) -> set[Path]:
        """Return the stores that have changed, as soon as there is one; empty after the timeout."""
        if self._inotify is None:
            return self._next_by_time(timeout_s)
        if not self._poll.poll(timeout_s * 1000):
            return set()
        with self._lock:
            return {path for watch, mask in self._events() for path in self._changed(watch, mask)}

    def _events(self) -> Iterator[tuple[int, int]]:
        """Yield watch and mask of each event that is there."""
        events = b"" if self._inotify is None else os.read(self._inotify, READ_BYTES)
        at = 0
        while at < len(events):
            watch, mask, _, name_bytes = EVENT.unpack_from(events, at)
            at += EVENT.size + name_bytes
            yield watch, mask

    def _changed(self, watch: int, mask: int) -> list[Path]:
        if mask & IN_Q_OVERFLOW:
            return list(self._paths.values())
        path = self._paths.get(watch)
        if mask & IN_MOVE_SELF:
            # Its name may be that of a new store by now. The kernel confirms the removal with IN_IGNORED.
            _libc().inotify_rm_watch(self._inotify, watch)
        elif mask & IN_IGNORED:
            self._paths.pop(watch, None)
        return [] if path is None else [path]

    def _next_by_time(self, timeout_s: float) -> set[Path]:
        deadline = time.monotonic() + timeout_s
        while True:
            with self._lock:
                now = {path: _time_of(path) for path in self._times}
                changed = {path for path, at in now.items() if at != self._times[path]}
                self._times = {path: at for path, at in now.items() if at}
            if changed or time.monotonic() >= deadline:
                return changed
            time.sleep(POLL_S)


def _open_inotify() -> int | None:
    if sys.platform != "linux":
        return None
    opened: int = _libc().inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    return opened if opened >= 0 else None


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _time_of(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
