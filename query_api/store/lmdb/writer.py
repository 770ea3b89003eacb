"""The writer of an LMDB store: records, positions and schemas in one transaction."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import lmdb

from include.files import NO_SPACE
from include.position import supersedes
from query_api.errors import StoreDamagedError, StoreFullError, StoreWriteError
from query_api.store.base import Binding, Change, ChangelogPosition, newest_changes
from query_api.store.commit_signal import announce_commit
from query_api.store.lmdb import layout
from query_api.store.stored_form import (
    dump_binding,
    dump_position,
    event_count_of,
    load_binding,
    load_position,
    pack,
)

MIN_FREE_BYTES = 64 * 1024 * 1024


class LmdbWriter:
    """The only writer of the store at `path`; creates it if it does not exist. Not thread-safe.

    Any method raises StoreDamagedError when LMDB finds its file corrupt, StoreFullError when the disk is full, and StoreWriteError
    when LMDB fails otherwise: the store must then be opened again.
    """

    is_shared = False
    max_key_bytes = layout.MAX_KEY_BYTES

    def __init__(self, path: Path, *, map_size_bytes: int, partitions: int) -> None:
        self._path = path
        path.mkdir(parents=True, exist_ok=True)
        with self._errors():
            layout.allocate_lock_file(path)
            self._environment = layout.open_environment(
                path, map_size_bytes=map_size_bytes, partitions=partitions, readonly=False
            )
            try:
                self._open_databases(partitions)
            except lmdb.Error:
                self._environment.close()  # a process can open an environment only once
                raise

    def _open_databases(self, partitions: int) -> None:
        self._positions = self._environment.open_db(layout.POSITIONS)
        self._schemas = self._environment.open_db(layout.SCHEMAS)
        self._binding = self._environment.open_db(layout.BINDING)
        self._records = {
            p: self._environment.open_db(layout.partition_database(p)) for p in range(partitions)
        }

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Translate LMDB's errors."""
        try:
            yield
        except layout.DAMAGE as error:
            raise StoreDamagedError.at(self._path, str(error)) from error
        except lmdb.MapFullError:
            raise
        except (lmdb.Error, OSError) as error:
            kind = StoreFullError if layout.has_cause(error, NO_SPACE) else StoreWriteError
            raise kind.at(self._path, error) from error

    def commit(
        self,
        changes: Mapping[int, Iterable[Change]],
        positions: Mapping[int, ChangelogPosition],
        schemas: Mapping[int, str],
    ) -> None:
        """Atomically apply changes by partition, in order, with their positions and schemas.

        1. For each partition: keep the newest change of each key, read the stored records, write the changes that are not older.
        2. Write the positions and the schemas.
        3. Commit. Readers see all of it in their next transaction.
        4. Wake the readers that wait for a commit.
        """

        def write(transaction: "lmdb.Transaction[bytes]") -> None:
            for partition, partition_changes in changes.items():
                self._apply(transaction, partition, partition_changes)
            for partition, position in positions.items():
                key = layout.number_key(partition)
                transaction.put(key, dump_position(position), db=self._positions)
            for schema_id, text in schemas.items():
                transaction.put(layout.number_key(schema_id), text.encode(), db=self._schemas)

        self._write(write)
        announce_commit(self._path)

    def _apply(
        self, transaction: "lmdb.Transaction[bytes]", partition: int, changes: Iterable[Change]
    ) -> None:
        newest, deleted = newest_changes(changes)
        cursor = transaction.cursor(db=self._records[partition])
        keys = sorted(newest)  # neighbouring keys are on the same page
        present = dict(cursor.getmulti(keys)) if len(keys) > 1 else _get_one(cursor, keys)
        puts = []
        for key in keys:
            change = newest[key]
            if change.value is None:
                transaction.delete(key, db=self._records[partition])
                continue
            stored = present.get(key)
            if stored is None or key in deleted or supersedes(change.event_count, event_count_of(stored)):
                puts.append((key, pack(key, change.event_count, change.offset, change.value)))
        cursor.putmulti(puts)

    def _write(self, write: "Callable[[lmdb.Transaction[bytes]], None]") -> None:
        """Run a write transaction; when the map is full, double it and retry."""
        while True:
            try:
                with self._errors(), self._environment.begin(write=True) as transaction:
                    write(transaction)
            except lmdb.MapFullError:
                self._grow()
            else:
                return

    def _grow(self) -> None:
        free_bytes = shutil.disk_usage(self._path).free
        if free_bytes < MIN_FREE_BYTES:
            raise StoreFullError.at(self._path, f"its disk has {free_bytes} bytes left")
        self._environment.set_mapsize(self._environment.info()["map_size"] * 2)

    def schemas(self) -> dict[int, str]:
        """Return every stored schema, by id."""
        return {int(k): v.decode() for k, v in self._items(self._schemas)}

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""
        return {int(k): load_position(v) for k, v in self._items(self._positions)}

    def _items(self, database: "lmdb._Database") -> list[tuple[bytes, bytes]]:
        with self._errors(), self._environment.begin(db=database) as transaction:
            return list(transaction.cursor())

    def binding(self) -> Binding | None:
        """Return the changelog incarnation that the store was filled from; None for a new store."""
        stored = dict(self._items(self._binding)).get(layout.BINDING)
        if stored is None:
            return None
        try:
            return load_binding(stored)
        except (json.JSONDecodeError, TypeError) as error:
            raise StoreDamagedError.at(self._path, f"binding {stored!r}") from error

    def bind(self, binding: Binding) -> None:
        """Record the changelog incarnation that the store is filled from."""
        self._write(lambda t: _ignore(t.put(layout.BINDING, dump_binding(binding), db=self._binding)))

    def forget(self, partition: int) -> None:
        """Remove a partition's records and position."""

        def write(transaction: "lmdb.Transaction[bytes]") -> None:
            transaction.drop(self._records[partition], delete=False)
            transaction.delete(layout.number_key(partition), db=self._positions)

        self._write(write)

    def adopt(self, partitions: Iterable[int]) -> dict[int, ChangelogPosition]:
        """Return the positions of those partitions that the store has records of."""
        wanted = set(partitions)
        return {p: position for p, position in self.positions().items() if p in wanted}

    def release(self, partition: int) -> None:
        """Remove a partition's records and position: there is nobody to hand it over to."""
        self.forget(partition)

    def mark_complete(self, partitions: Iterable[int]) -> None:
        """Do nothing: only this node reads the store, and it knows its follower's state."""

    def readable_positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition."""
        return self.positions()

    def record_count(self) -> int:
        """Return the number of records over all partitions."""
        with self._errors(), self._environment.begin() as transaction:
            return sum(transaction.stat(database)["entries"] for database in self._records.values())

    def housekeep(self) -> None:
        """Free the slots of killed readers, which prevent old pages from being reused."""
        with self._errors():
            self._environment.reader_check()

    def close(self, *, sync: bool = True) -> None:
        """Close the store; with `sync`, flush its file to disk first."""
        try:
            if sync:
                with self._errors():
                    self._environment.sync(True)  # noqa: FBT003 - the parameter's name differs between versions
        finally:
            self._environment.close()


def _get_one(cursor: "lmdb.Cursor[bytes]", keys: list[bytes]) -> dict[bytes, bytes]:
    return {key: cursor.value() for key in keys if cursor.set_key(key)}


def _ignore(_: object) -> None:
    """Ignore a result."""
