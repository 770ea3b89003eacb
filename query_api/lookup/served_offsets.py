"""Up to which changelog offset a node has answered, by partition: the node never answers from an older state of the partition.

Its HTTP workers share the offsets in mapped files, one for each version, which outlive the workers. Each worker writes only its own
slot of a file, so no worker overwrites another's, and the greatest value of all slots counts.
"""

import fcntl
import mmap
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from include.files import PRIVATE_FILE
from query_api.lookup.routing import KeyLocation

DIRECTORY = "served"
LOCKS_FILE = "slots"
VALUE_BYTES = 8
# More than two servers of a node have workers; the file has room for all of them.
MAX_SLOTS = 128
# Two HTTP servers run while one replaces the other.
SERVERS = 2
# A worker that is being replaced still has its slot.
SPARE_SLOTS = 2


class VersionOffsets:
    """The offsets of one version. Thread-safe."""

    def __init__(self, path: Path, partitions: int, slot: int, slots: int) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._partitions = partitions
        self._first = slot * partitions
        self._identity, values = _mapped(path, partitions * MAX_SLOTS * VALUE_BYTES)
        for partition in range(partitions):
            # Also of workers that an earlier setting allowed.
            values[self._first + partition] = max(values[partition::partitions])
        self._values = values[: partitions * slots]

    def is_replaced(self) -> bool:
        """Whether another file, or none, is at the path."""
        return self._identity != _identity(self.path)

    def of(self, partition: int) -> int:
        """Return the offset after the newest changelog record that the node has answered with; 0 if there is none."""
        return max(self._values[partition :: self._partitions])

    def extend(self, partition: int, next_offset: int) -> None:
        """Note that the node answers with the changelog record before `next_offset`: call it before the answer is sent."""
        index = self._first + partition
        if next_offset > self._values[index]:
            with self._lock:
                self._values[index] = max(self._values[index], next_offset)


class ServedOffsets:
    """The offsets of one node; one object for each HTTP worker. Thread-safe."""

    def __init__(self, store_dir: Path, workers: int) -> None:
        self._directory = store_dir / DIRECTORY
        self._slots = min(MAX_SLOTS, SERVERS * workers + SPARE_SLOTS)
        self._slot: int | None = None
        self._locks = -1
        self._versions: dict[tuple[str, int], VersionOffsets] = {}
        self._opening = threading.Lock()

    def keep(self, models: Iterable[str], versions: set[tuple[str, int]]) -> None:
        """Remove what is stored for other versions of these models, and forget files that were removed."""
        for key, found in list(self._versions.items()):
            if key not in versions or found.is_replaced():
                self._versions.pop(key, None)
        known = set(models)
        for path in self._directory.glob("*.v*"):
            model, _, number = path.name.rpartition(".v")
            if model in known and number.isdigit() and (model, int(number)) not in versions:
                with suppress(OSError):
                    path.unlink(missing_ok=True)

    def of_location(self, location: KeyLocation, version: int | None = None) -> VersionOffsets:
        """Return the offsets of a version of a key's read model: by default, those of the version in the location."""
        model = location.model
        return self.of_version(
            model.name, location.version if version is None else version, model.partition_count
        )

    def of_version(self, model: str, version: int, partitions: int) -> VersionOffsets:
        """Return the offsets of a version."""
        found = self._versions.get((model, version))
        if found is not None:
            return found
        with self._opening:
            if self._slot is None:
                self._slot = self._claim()
            path = served_path(self._directory.parent, model, version)
            return self._versions.setdefault(
                (model, version), VersionOffsets(path, partitions, self._slot, self._slots)
            )

    def _claim(self) -> int:
        """Lock a slot for as long as this process lives, and return it."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._locks = os.open(self._directory / LOCKS_FILE, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        except OSError:
            return 0  # on a full disk the files cannot be created either
        for slot in range(self._slots):
            with suppress(OSError):
                fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
                return slot
        return self._slots - 1


def served_path(store_dir: Path, model: str, version: int) -> Path:
    """Return the file of a version."""
    return store_dir / DIRECTORY / f"{model}.v{version}"


def read_served(path: Path, partitions: int) -> list[int]:
    """Return the offset of each partition in a file; zeros if there is none."""
    try:
        values = memoryview(path.read_bytes()).cast("q")
    except (OSError, TypeError):
        return [0] * partitions
    return [max(values[partition::partitions], default=0) for partition in range(partitions)]


def _mapped(path: Path, size: int) -> tuple[tuple[int, int] | None, "memoryview[int]"]:
    """Map a file, created if necessary, and return its identity; memory of this worker alone if the disk is full."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    except OSError:
        return None, memoryview(bytearray(size)).cast("q")
    try:
        # Allocated first: the kernel kills a process that writes to a page of a mapped file for which the disk has no space.
        os.posix_fallocate(file, 0, size)
        found = os.fstat(file)
        return (found.st_dev, found.st_ino), memoryview(mmap.mmap(file, size)).cast("q")
    except OSError:
        return None, memoryview(bytearray(size)).cast("q")
    finally:
        os.close(file)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
