"""The stores of one node on its disk: one directory for each version, opened whole or not at all.

<store_dir>/writer.lock          held by the materializer for as long as it lives
<store_dir>/<model>.v<N>/        LMDB's files
    incarnation                  which boot of the machine the writer ran on, and whether it closed cleanly
    damaged                      left by a reader that found damage: the materializer replaces the store
    attempts                     how often the store was opened without a quiet minute after it
"""

import fcntl
import shutil
import time
from pathlib import Path
from typing import IO

from query_api.errors import StoreDamagedError, StoreLockedError, StoreMissingError, StoreUnusableError
from query_api.store.base import Binding
from query_api.store.lmdb import integrity
from query_api.store.lmdb.layout import DATA_FILE
from query_api.store.lmdb.reader import LmdbReader
from query_api.store.lmdb.writer import LmdbWriter

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# A store that takes its writer down three times in a row is not worth a fourth.
MAX_ATTEMPTS = 3


class StoreDirectory:
    """Opens and removes the stores below `root`."""

    def __init__(self, root: Path, map_size_bytes: int) -> None:
        self._root = root
        self._map_size_bytes = map_size_bytes
        self._lock_file: IO[str] | None = None

    def lock(self) -> None:
        """Become the one writer of this node; raises StoreLockedError when another process is."""
        self._root.mkdir(parents=True, exist_ok=True)
        lock_file = (self._root / "writer.lock").open("w")
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock_file.close()
            raise StoreLockedError.at(self._root) from error
        self._lock_file = lock_file
        for leftover in self._root.glob("*.discarded-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def unlock(self) -> None:
        """Let another process become the writer."""
        if self._lock_file is not None:
            self._lock_file.close()

    def path(self, model: str, version: int) -> Path:
        """Return the directory of a version's store."""
        return self._root / f"{model}.v{version}"

    def stored_versions(self) -> list[tuple[str, int]]:
        """Return (model, version) of every store on the disk."""
        found = []
        for path in self._root.glob("*.v*"):
            model, _, version = path.name.rpartition(".v")
            if version.isdigit() and path.is_dir():
                found.append((model, int(version)))
        return sorted(found)

    def open_writer(
        self, model: str, version: int, partitions: int, binding: Binding | None, *, may_be_new: bool = True
    ) -> LmdbWriter:
        """Open a version's store for writing; makes an empty one where there is none.

        binding: what the store has to be filled from; None (Kafka does not answer): it is taken as it is.
        may_be_new: whether there may be none. Where readers take it to be complete, an empty one would be wrong.
        Raises StoreUnusableError when it is damaged, gone, or of another changelog: whoever discards it has to see
        to it first that nobody answers from what takes its place.
        """
        path = self.path(model, version)
        finding = self._finding(path) if path.exists() or may_be_new else "it is gone"
        if finding:
            raise StoreDamagedError.at(path, finding)
        store = self._open(path, partitions)
        try:
            self._bind(store, path, binding)
        except Exception:
            store.close(sync=False)
            raise
        return store

    @staticmethod
    def _bind(store: LmdbWriter, path: Path, binding: Binding | None) -> None:
        held = store.binding()
        if binding is None or held == binding:
            return
        if held is not None:
            raise StoreUnusableError.of_another_changelog(path, held, binding)
        store.bind(binding)

    def _open(self, path: Path, partitions: int) -> LmdbWriter:
        path.mkdir(parents=True, exist_ok=True)
        (path / "attempts").write_text(str(self._attempts(path) + 1))
        (path / "incarnation").write_text(f"{_boot_id()} open")
        return LmdbWriter(path, map_size_bytes=self._map_size_bytes, partitions=partitions)

    def _finding(self, path: Path) -> str | None:
        """Return why the store at `path` must not be used, or None."""
        if not path.exists():
            return None
        if not (path / DATA_FILE).exists():
            return "its data file is missing"
        if (path / "damaged").exists():
            return f"a reader found damage ({(path / 'damaged').read_text()})"
        if self._attempts(path) >= MAX_ATTEMPTS:
            return f"its writer died {MAX_ATTEMPTS} times in a row"
        boot_id, _, ending = _read(path / "incarnation").partition(" ")
        if ending != "closed" and boot_id != _boot_id():
            return "the machine went down while it was being written"
        return integrity.damage(path)

    @staticmethod
    def _attempts(path: Path) -> int:
        text = _read(path / "attempts")
        return int(text) if text.isdigit() else 0

    def proved_good(self, model: str, version: int) -> None:
        """Say that the store has worked for a while."""
        (self.path(model, version) / "attempts").unlink(missing_ok=True)

    def close_writer(self, store: LmdbWriter, model: str, version: int) -> None:
        """Close a store and note that it is whole on disk."""
        store.close()
        path = self.path(model, version)
        (path / "attempts").unlink(missing_ok=True)
        (path / "incarnation").write_text(f"{_boot_id()} closed")

    def discard(self, model: str, version: int) -> None:
        """Remove a version's store; readers that have it open keep what they see until they notice."""
        path = self.path(model, version)
        if not path.exists():
            return
        discarded = path.with_name(f"{path.name}.discarded-{time.time_ns()}")
        path.rename(discarded)
        shutil.rmtree(discarded, ignore_errors=True)

    def is_reported_damaged(self, model: str, version: int) -> bool:
        """Whether a reader found damage, or the data file is gone."""
        path = self.path(model, version)
        return (path / "damaged").exists() or not (path / DATA_FILE).exists()

    def report_damage(self, model: str, version: int, error: StoreDamagedError) -> None:
        """Leave word for the materializer."""
        try:
            (self.path(model, version) / "damaged").write_text(str(error))
        except OSError as gone:
            raise StoreMissingError(f"The store of {model} v{version} is gone already.") from gone

    def open_reader(self, model: str, version: int, partitions: int) -> LmdbReader:
        """Open a version's store for reading; raises StoreMissingError or StoreDamagedError."""
        return LmdbReader(
            self.path(model, version), map_size_bytes=self._map_size_bytes, partitions=partitions
        )


def _boot_id() -> str:
    return _read(BOOT_ID).strip() or "unknown"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
