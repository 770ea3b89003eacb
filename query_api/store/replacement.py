"""Notices that the file which stands for an open store was removed or replaced."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from query_api.errors import StoreMissingError

# Calling stat(2) costs 1 us; a replaced store is noticed after this long.
CHECK_INTERVAL_S = 0.05

FileIdentity = tuple[int, ...]


def inode_of(status: os.stat_result) -> FileIdentity:
    """Return the identity of a file that its reader keeps open: no other file gets its inode meanwhile."""
    return (status.st_ino,)


class ReplacementCheck:
    """Remembers which file is at `path`; safe for use by several threads. Raises StoreMissingError if there is none."""

    def __init__(self, path: Path, identity: Callable[[os.stat_result], FileIdentity] = inode_of) -> None:
        self._path = path
        self._identity = identity
        self._opened = self._on_disk()
        self._checked_at = time.monotonic()

    def is_replaced(self) -> bool:
        """Whether another file is there now, or none (looked up every 50 ms at most)."""
        now = time.monotonic()
        if now - self._checked_at < CHECK_INTERVAL_S:
            return False
        self._checked_at = now
        try:
            return self._on_disk() != self._opened
        except StoreMissingError:
            return True

    def _on_disk(self) -> FileIdentity:
        try:
            return self._identity(self._path.stat())
        except OSError as error:
            raise StoreMissingError.at(self._path.parent) from error
