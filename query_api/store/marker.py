"""The marker file of a store: whether its writer has closed it, during which boot it was open, and how often it was opened in vain."""

import errno
import os
from dataclasses import dataclass, replace
from pathlib import Path

from include.boot_clock import boot_id
from include.files import NO_SPACE, write_without_space
from query_api.errors import StoreFullError, StoreWriteError

FILE_NAME = "incarnation"
# Longer than any content, so that each new content fits into the file on a full disk, and less than a disk's sector.
RESERVE_BYTES = 128


@dataclass(frozen=True)
class StoreLifecycle:
    """The content of the file: `<boot id> <open or closed> <attempts> <unchecked>`.

    boot_id: of the machine when the store was opened or closed; empty when there is no marker.
    attempts: consecutive times that the store was opened, and the process that had it open was killed before it had used the
        store for a while.
    unchecked: consecutive times that the store was opened before all of its records were checked.
    """

    boot_id: str = ""
    is_closed: bool = False
    attempts: int = 0
    unchecked: int = 0

    @property
    def survived(self) -> bool:
        """Whether everything that was written is on disk: the store was closed, or the machine has not restarted since."""
        return self.is_closed or self.is_of_this_boot

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the machine has not restarted since the store was opened or closed."""
        return self.boot_id == boot_id()

    def opened(self, *, is_checked: bool) -> "StoreLifecycle":
        """Return the marker of the store while it is open; `is_checked`: all of its records were just checked."""
        unchecked = 0 if is_checked else self.unchecked + 1
        return StoreLifecycle(boot_id(), attempts=self.attempts + 1, unchecked=unchecked)

    def closed(self) -> "StoreLifecycle":
        """Return the marker of the store after its writer has closed it."""
        return StoreLifecycle(boot_id(), is_closed=True)

    def without_attempts(self) -> "StoreLifecycle":
        """Return the marker of a store that has not harmed its writer."""
        return replace(self, attempts=0)

    def not_killed(self) -> "StoreLifecycle":
        """Return the marker of a store that its writer has given up: neither count says anything about the store."""
        return replace(self, attempts=0, unchecked=0)

    def checked(self) -> "StoreLifecycle":
        """Return the marker of a store whose records were all checked while it was open."""
        return replace(self, unchecked=0)


def read_marker(store: Path) -> StoreLifecycle:
    """Return the marker of the store at this directory."""
    try:
        words = (store / FILE_NAME).read_text().split()
    except OSError:
        return StoreLifecycle()
    if len(words) < 2:  # noqa: PLR2004 - boot id and ending
        return StoreLifecycle()
    # The counts are not in the marker of an older version.
    attempts, unchecked = (int(word) if word.isdigit() else 0 for word in [*words[2:], "", ""][:2])
    return StoreLifecycle(words[0], words[1] == "closed", attempts, unchecked)


def write_marker(store: Path, marker: StoreLifecycle) -> None:
    """Replace the marker; a full disk has no space only for the first one. Raises StoreFullError or StoreWriteError."""
    ending = "closed" if marker.is_closed else "open"
    content = f"{marker.boot_id} {ending} {marker.attempts} {marker.unchecked}\n".encode()
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
