"""The marker file of a store: whether its writer has closed it, during which boot it was open, and how often it was opened in vain."""

import errno
import os
from dataclasses import dataclass, replace
from pathlib import Path

from include.files import NO_SPACE, write_without_space
from query_api.errors import StoreFullError, StoreWriteError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
FILE_NAME = "incarnation"
# Longer than any content, so that each new content fits into the file on a full disk, and less than a disk's sector.
RESERVE_BYTES = 128


@dataclass(frozen=True)
class StoreMarker:
    """The content of the file: `<boot id> <open or closed> <attempts>`.

    boot_id: of the machine when the store was opened or closed; empty when there is no marker.
    attempts: consecutive times that the store was opened, and the process that had it open was killed before it had used the
        store for a while.
    """

    boot_id: str = ""
    is_closed: bool = False
    attempts: int = 0

    @property
    def survived(self) -> bool:
        """Whether everything that was written is on disk: the store was closed, or the machine has not restarted since."""
        return self.is_closed or self.boot_id == boot_id()

    def opened(self) -> "StoreMarker":
        """Return the marker of the store while it is open."""
        return StoreMarker(boot_id(), is_closed=False, attempts=self.attempts + 1)

    def closed(self) -> "StoreMarker":
        """Return the marker of the store after its writer has closed it."""
        return StoreMarker(boot_id(), is_closed=True)

    def without_attempts(self) -> "StoreMarker":
        """Return the marker of a store that has not harmed its writer."""
        return replace(self, attempts=0)


def boot_id() -> str:
    """Return the id of the machine's current boot."""
    return _read(BOOT_ID).strip() or "unknown"


def read_marker(store: Path) -> StoreMarker:
    """Return the marker of the store at this directory."""
    words = _read(store / FILE_NAME).split()
    if len(words) < 2:  # noqa: PLR2004 - boot id and ending
        return StoreMarker()
    attempts = words[2] if len(words) > 2 else ""  # noqa: PLR2004 - not in the marker of an older version
    return StoreMarker(words[0], words[1] == "closed", int(attempts) if attempts.isdigit() else 0)


def write_marker(store: Path, marker: StoreMarker) -> None:
    """Replace the marker; a full disk has no space only for the first one. Raises StoreFullError or StoreWriteError."""
    ending = "closed" if marker.is_closed else "open"
    content = f"{marker.boot_id} {ending} {marker.attempts}\n".encode()
    try:
        store.stat()  # writing would create the directory again
        write_without_space(store / FILE_NAME, content, reserve=RESERVE_BYTES)
    except OSError as error:
        raise write_error(store, error) from error


def write_error(store: Path, error: OSError) -> StoreWriteError:
    """Return the error for a file of the store that the operating system could not write."""
    reason = os.strerror(error.errno or errno.EIO)
    kind = StoreFullError if error.errno in NO_SPACE else StoreWriteError
    return kind.at(store, reason)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
