"""A file by which the materializer tells the HTTP workers of its node something, such as the node's state.

It is replaced atomically: a worker reads the old content or the new one. It survives a restart. On a full disk it is overwritten in
place, so its first line is a checksum of the second line, which is JSON.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar
from zlib import crc32

from include.files import write_without_space

# The file grows in steps of this size, so that a content that is a little longer needs no space on a full disk.
RESERVE_BYTES = 16_384
CHECK_S = 0.05

Content = TypeVar("Content")


def write(path: Path, text: bytes, mode: int | None = None) -> None:
    """Replace the file by one line of JSON; raises OSError when the disk is full and the file cannot be overwritten either."""
    write_without_space(path, b"%08x\n%s\n" % (crc32(text), text), reserve=RESERVE_BYTES, mode=mode)


def read(path: Path) -> bytes | None:
    """Return the line; None when there is no readable file."""
    try:
        checksum, text, _ = path.read_bytes().split(b"\n", 2)
        return text if int(checksum, 16) == crc32(text) else None
    except (OSError, ValueError):
        return None


class FileWatch(Generic[Content]):
    """The newest content of such a file, as `parse` returns it; looks at the file at most every 50 ms. Thread-safe."""

    def __init__(self, path: Path, parse: Callable[[], Content | None]) -> None:
        """Watch a file. parse: reads it; returns None when it has no readable content."""
        self._path = path
        self._parse = parse
        self._checked_at = 0.0
        self._identity: tuple[int, int] = (0, 0)
        self._content: Content | None = None
        self._first_reading = threading.Lock()

    def current(self) -> Content | None:
        """Return the newest content; None before the materializer has written any."""
        if self._content is None:
            with self._first_reading:  # no thread returns None while another thread reads the first content
                self._refresh()
            return self._content
        now = time.monotonic()
        if now - self._checked_at >= CHECK_S:
            self._checked_at = now
            self._refresh()
        return self._content

    def _refresh(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            return
        identity = (status.st_ino, status.st_mtime_ns)
        if identity != self._identity:
            content = self._parse()
            if content is not None:
                self._content, self._identity = content, identity
