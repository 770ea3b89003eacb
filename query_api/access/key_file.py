"""The API keys that a node knows, as one file: its materializer writes it, its HTTP workers read it.

Like the node's state, it is replaced atomically, or overwritten in place on a full disk, so that a revocation needs no space. It
survives a restart: keys go on while Kafka is down.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from zlib import crc32

from include.access.api_key import ApiKey, keys_to_json, parse_keys
from include.files import PRIVATE_FILE, write_without_space

FILE_NAME = "api-keys"
# The file grows in steps of this size.
RESERVE_BYTES = 16_384
CHECK_S = 0.05

log = logging.getLogger(__name__)


def write_key_file(directory: Path, keys: Iterable[ApiKey]) -> None:
    """Replace the file; raises OSError when the disk is full and the file cannot be overwritten either."""
    text = keys_to_json(keys)
    content = b"%08x\n%s\n" % (crc32(text), text)
    write_without_space(directory / FILE_NAME, content, reserve=RESERVE_BYTES, mode=PRIVATE_FILE)


def read_key_file(directory: Path) -> dict[str, ApiKey] | None:
    """Return the keys by id; None when there is no readable file."""
    try:
        checksum, text, _ = (directory / FILE_NAME).read_bytes().split(b"\n", 2)
        if int(checksum, 16) != crc32(text):
            return None
        return parse_keys(text)
    except (OSError, ValueError):
        return None


class KeyWatch:
    """The newest keys of the file; looks at it at most every 50 ms. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / FILE_NAME
        self._lock = threading.Lock()
        self._checked_at = float("-inf")
        self._identity: tuple[int, int] = (0, 0)
        self._keys: Mapping[str, ApiKey] | None = None

    def current(self) -> Mapping[str, ApiKey] | None:
        """Return the keys by id; None before the materializer has written any."""
        now = time.monotonic()
        if now - self._checked_at >= CHECK_S:
            with self._lock:
                self._refresh()
                self._checked_at = now
        return self._keys

    def _refresh(self) -> None:
        try:
            status = self._path.stat()
        except OSError:
            return
        identity = (status.st_ino, status.st_mtime_ns)
        if identity != self._identity:
            keys = read_key_file(self._directory)
            if keys is not None:
                self._keys, self._identity = keys, identity
