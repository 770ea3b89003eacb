"""Detects that the file of an open store was removed or replaced."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from query_api.errors import StoreMissingError

# A call of stat(2) costs 1 us; a replaced store is detected within this time.
CHECK_INTERVAL_S = 0.05

FileIdentity = tuple[int, ...]


def inode_of(status: os.stat_result) -> FileIdentity:
    """Return the identity of a file that its reader keeps open, so that no other file can get its inode."""
    return (status.st_ino,)


class ReplacementCheck:
    """Remembers which file is at `path`; thread-safe. Raises StoreMissingError if it does not exist."""

    def __init__(self, path: Path, identity: Callable[[os.stat_result], FileIdentity] = inode_of) -> None:
        self._path = path
        self._identity = identity
        self._opened = self._on_disk()
        self._checked_at = time.monotonic()

    def is_replaced(self) -> bool:
        """Whether the file was replaced or removed since (checked at most every 50 ms)."""
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
