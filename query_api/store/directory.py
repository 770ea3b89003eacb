"""The stores of one node: one directory per version, opened only if it is complete and undamaged.

<store_dir>/writer.lock          held by the materializer while it runs
<store_dir>/<model>.v<N>/        the backend's files; of a store that all nodes share, only that this node uses it
    incarnation                  marker.py: the boot id of the writer's machine, and whether the writer has closed the store
    damaged                      written by a reader that found damage: the materializer replaces the store
"""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from include.files import NO_SPACE, FileLock, holder_of, write_atomically
from query_api.errors import (
    StoreDamagedError,
    StoreLockedError,
    StoreMissingError,
    StoreUnusableError,
    StoreWriteError,
)
from query_api.store.base import Binding, StoreBackend, StoreReader, StoreWriter
from query_api.store.checks import CheckExtent, StoreCheck
from query_api.store.marker import StoreLifecycle, read_marker, write_error, write_marker

LOCK_FILE = "writer.lock"
DAMAGED_FILE = "damaged"
# A store whose writer was killed this many times in a row, soon after it had opened the store, is replaced.
MAX_ATTEMPTS = 3
# A store that was opened this many times in a row, and whose writer was killed each time before all records were checked, is
# checked before it is opened again: damage may be what kills its writer.
MAX_UNCHECKED = 3
CHECK_POLL_S = 0.5
# While a process waits for the end of the one before, nothing is written to the stores.
LOCK_POLL_S = 0.02


class StoreDirectory:
    """Opens and removes the stores below `root`.

    backend: of all read models but those in `shared`, whose stores all nodes share.
    """

    def __init__(
        self, root: Path, backend: StoreBackend, shared: Mapping[str, StoreBackend] = MappingProxyType({})
    ) -> None:
        self._root = root
        self._backend = backend
        self._shared = shared
        self._lock = FileLock(root / LOCK_FILE)

    @property
    def max_key_bytes(self) -> int:
        """The maximum length of a key in a store."""
        return max(backend.max_key_bytes for backend in (self._backend, *self._shared.values()))

    def is_shared(self, model: str) -> bool:
        """Whether all nodes share the stores of a read model."""
        return model in self._shared

    def _backend_of(self, model: str) -> StoreBackend:
        return self._shared.get(model, self._backend)

    def lock(self, waits: Callable[[], bool] = lambda: False) -> None:
        """Take the lock of this node's only writer; raises StoreLockedError when another process has it and `waits` returns False."""
        while not self._lock.try_acquire():
            if not waits():
                raise StoreLockedError.at(self._root, holder_of(self._lock.path))
            time.sleep(LOCK_POLL_S)
        for leftover in self._root.glob("*.discarded-*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def unlock(self) -> None:
        """Release the writer's lock."""
        self._lock.release()

    def path(self, model: str, version: int) -> Path:
        """Return the directory of a version's store."""
        return self._root / f"{model}.v{version}"

    def stored_versions(self) -> list[tuple[str, int]]:
        """Return (model, version) of every store directory."""
        found = []
        for path in self._root.glob("*.v*"):
            model, _, version = path.name.rpartition(".v")
            if version.isdigit() and path.is_dir():
                found.append((model, int(version)))
        return sorted(found)

    def open_writer(
        self,
        model: str,
        version: int,
        partitions: int,
        binding: Binding | None,
        *,
        may_create: bool = True,
        while_checking: Callable[[str], None] = lambda _: None,
    ) -> StoreWriter:
        """Open a version's store for writing; creates an empty one if it does not exist.

        A store that was open or closed since the machine started is opened at once: a killed process damages nothing, and
        `begin_check` finds other damage while the store is in use. Otherwise all records are checked first, which takes as long as
        it takes.

        binding: the changelog that the store must have been filled from; None (Kafka is unavailable): not checked.
        may_create: False while HTTP workers assume that the store is complete, so that an empty one would be wrong.
        while_checking: called twice a second with the progress while the store is checked; an error of it ends the check.
        Raises StoreUnusableError when the store is damaged, missing, or was filled from another changelog: the caller
        discards it once no worker uses it. Raises StoreWriteError when it cannot be opened now, for example because the disk
        is full: the caller tries again.
        """
        path, backend = self.path(model, version), self._backend_of(model)
        before, is_checked = read_marker(path), True
        if _is_store(path):
            extent = _extent(before)
            is_checked = extent is CheckExtent.EVERYTHING
            reason = _reported_damage(path) if backend.is_shared else _finding(path, before)
            finding = reason or _finding_of(backend.begin_check(path, extent), while_checking)
        else:
            finding = None if may_create else "it does not exist"
        if finding:
            raise StoreUnusableError.at(path, finding)
        try:
            path.mkdir(parents=True, exist_ok=True)
            write_marker(path, before.opened(is_checked=is_checked))
            store = backend.open_writer(path, partitions)
        except OSError as error:
            raise write_error(path, error) from error
        except StoreWriteError:
            self._uncount(path)
            raise
        try:
            self._bind(store, path, binding)
        except Exception:
            store.close(sync=False)
            self._uncount(path)
            raise
        return store

    @staticmethod
    def _bind(store: StoreWriter, path: Path, binding: Binding | None) -> None:
        stored = store.binding()
        if binding is None or stored == binding:
            return
        if stored is not None:
            raise StoreUnusableError.at(
                path, f"it was filled from {stored}, and the changelog is now {binding}"
            )
        store.bind(binding)

    @staticmethod
    def _uncount(path: Path) -> None:
        """Reset the counts: the writer was not killed."""
        marker = read_marker(path)
        if marker.attempts or marker.unchecked:
            write_marker(path, marker.not_killed())

    def reset_attempts(self, model: str, version: int) -> None:
        """Reset the count of consecutive crashes: the store has worked for a while. Raises StoreWriteError."""
        path = self.path(model, version)
        marker = read_marker(path)
        if marker.attempts:
            write_marker(path, marker.without_attempts())

    def abandon_writer(self, store: StoreWriter, model: str, version: int) -> None:
        """Close a store whose data on disk need not be complete; raises StoreWriteError."""
        store.close(sync=False)
        self._uncount(self.path(model, version))

    def begin_check(self, model: str, version: int) -> StoreCheck | None:
        """Begin to check all records of a version's store, which is in use; None: that was done. Raises StoreWriteError."""
        path = self.path(model, version)
        if not read_marker(path).unchecked:
            return None
        return self._backend_of(model).begin_check(path, CheckExtent.IN_USE)

    def note_checked(self, model: str, version: int) -> None:
        """Record that all records of a store were checked since it was opened; raises StoreWriteError."""
        path = self.path(model, version)
        write_marker(path, read_marker(path).checked())

    def close_writer(self, store: StoreWriter, model: str, version: int) -> None:
        """Close a store and record that it is complete; raises StoreWriteError."""
        path = self.path(model, version)
        try:
            store.close()
        except StoreWriteError:
            self._uncount(path)
            raise
        write_marker(path, StoreLifecycle().closed())

    def discard(self, model: str, version: int) -> None:
        """Remove a version's store. A reader that has it open may return old records until it detects the removal.

        Raises StoreWriteError when it is shared, and its server does not answer.
        """
        path = self.path(model, version)
        if not path.exists():
            return
        self._backend_of(model).remove(path)
        discarded = path.with_name(f"{path.name}.discarded-{time.time_ns()}")
        path.rename(discarded)
        shutil.rmtree(discarded, ignore_errors=True)

    def is_reported_damaged(self, model: str, version: int) -> bool:
        """Whether a reader has reported damage, or the store's files are missing."""
        path = self.path(model, version)
        return (path / DAMAGED_FILE).exists() or not self._backend_of(model).exists(path)

    def report_damage(self, model: str, version: int, error: StoreDamagedError) -> None:
        """Record damage for the materializer, which replaces the store."""
        path = self.path(model, version)
        marker = path / DAMAGED_FILE
        try:
            if not path.is_dir():  # `write_atomically` would create it
                raise FileNotFoundError(path)
            try:
                write_atomically(marker, str(error))
            except OSError as failed:
                if failed.errno not in NO_SPACE:
                    raise
                marker.touch()  # an empty file needs no space
        except OSError as gone:
            raise StoreMissingError.at(path) from gone

    def open_reader(self, model: str, version: int, partitions: int) -> StoreReader:
        """Open a version's store for reading; raises StoreMissingError or StoreDamagedError."""
        return self._backend_of(model).open_reader(self.path(model, version), partitions)


def _is_store(path: Path) -> bool:
    """Whether a store's directory has any file; without one, its creation has failed on a full disk."""
    return path.is_dir() and any(path.iterdir())


def _reported_damage(path: Path) -> str | None:
    if (path / DAMAGED_FILE).exists():
        return f"a reader found damage: {(path / DAMAGED_FILE).read_text()}"
    return None


def _finding(path: Path, marker: StoreLifecycle) -> str | None:
    """Return why the store at `path` must not be used, whatever its content; or None."""
    if reported := _reported_damage(path):
        return reported
    if marker.attempts >= MAX_ATTEMPTS:
        return f"its writer died {MAX_ATTEMPTS} times in a row"
    if not marker.survived:
        return "the machine restarted while it was open for writing"
    return None


def _extent(marker: StoreLifecycle) -> CheckExtent:
    """Return what must be checked before a store is opened."""
    is_quick = marker.is_of_this_boot and marker.unchecked < MAX_UNCHECKED
    return CheckExtent.OPENING if is_quick else CheckExtent.EVERYTHING


def _finding_of(check: StoreCheck, while_checking: Callable[[str], None]) -> str | None:
    """Wait for a check, and return why the store cannot be used, or None."""
    try:
        while not check.wait(CHECK_POLL_S):
            while_checking(check.progress)
        return check.finding()
    finally:
        check.stop()
