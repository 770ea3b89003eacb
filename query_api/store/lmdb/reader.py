"""The reader of an LMDB store: read-only, and never blocked by the writer."""

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TypeVar

import lmdb

from query_api.errors import StoreDamagedError, StoreMissingError
from query_api.store.base import ALL_KEYS, ChangelogPosition, KeyRange, Page, StoredRecord
from query_api.store.lmdb import layout
from query_api.store.stored_form import load_position, unpack

# A call of stat(2) costs 1 us; a replaced store is detected within this time.
CHECK_INTERVAL_S = 0.05

T = TypeVar("T")


class ReplacementCheck:
    """Remembers which file is at `path`, which the reader keeps open: no other file can get its inode. Thread-safe.

    Raises StoreMissingError if the file does not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
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

    def _on_disk(self) -> int:
        try:
            return self._path.stat().st_ino
        except OSError as error:
            raise StoreMissingError.at(self._path.parent) from error


class LmdbReader:
    """A read-only view of the store at `path`. Thread-safe."""

    def __init__(self, path: Path, *, map_size_bytes: int, partitions: int) -> None:
        self._path = path
        # Before the file is opened: a file that replaces it in between is then detected as a replacement.
        self._replacement = ReplacementCheck(path / layout.DATA_FILE)
        try:
            self._environment = layout.open_environment(
                path, map_size_bytes=map_size_bytes, partitions=partitions, readonly=True
            )
            if layout.is_truncated(self._environment, path):
                raise StoreDamagedError.at(path, layout.TRUNCATED)
            # All of them, before any transaction: LMDB does not allow several threads to open databases concurrently.
            self._positions = self._environment.open_db(layout.POSITIONS, create=False)
            self._schemas = self._environment.open_db(layout.SCHEMAS, create=False)
            self._records = [
                self._environment.open_db(layout.partition_database(p), create=False)
                for p in range(partitions)
            ]
        except lmdb.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: lmdb.Error) -> StoreDamagedError | StoreMissingError:
        if isinstance(error, layout.DAMAGE):
            return StoreDamagedError.at(self._path, str(error))
        return StoreMissingError.unreadable(self._path, error)

    def is_replaced(self) -> bool:
        """Whether the store was removed or replaced."""
        return self._replacement.is_replaced()

    def get(self, partition: int, key: bytes) -> StoredRecord | None:
        """Return the record of a key, or None; raises StoreDamagedError when its checksum does not match."""
        if not 0 < len(key) <= layout.MAX_KEY_BYTES:
            return None
        database = self._records[partition]

        def read(transaction: "lmdb.Transaction[bytes]") -> StoredRecord | None:
            stored = transaction.get(key)
            return None if stored is None else unpack(key, stored)

        return self._in_transaction(database, read)

    def scan(self, partition: int, keys: KeyRange = ALL_KEYS, *, after: bytes = b"", limit: int) -> Page:
        """Return at most `limit` records of a range of keys, in one transaction; see StoreReader.scan."""
        database, upper = self._records[partition], keys.upper

        def read(transaction: "lmdb.Transaction[bytes]") -> Page:
            cursor = transaction.cursor(db=database)
            there = _seek(cursor, keys.first, after)
            # One more than the limit: whether there is a next page.
            found = list(islice(cursor.iternext(), limit + 1)) if there else []
            if upper is not None and found and found[-1][0] >= upper:
                found = [entry for entry in found if entry[0] < upper]
            is_more = len(found) > limit
            names, stored = zip(*found[:limit], strict=True) if found else ((), ())
            total = transaction.stat(database)["entries"]
            return Page(names, stored, names[-1] if is_more else None, total)

        return self._in_transaction(database, read)

    def count(self, partition: int) -> int:
        """Return the number of records in a partition."""
        database = self._records[partition]
        return self._in_transaction(database, lambda t: int(t.stat(database)["entries"]))

    def size_bytes(self) -> int:
        """Return the size of the data file."""
        pages = self._environment.info()["last_pgno"] + 1
        return int(pages * self._environment.stat()["psize"])

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""
        key = layout.number_key(schema_id)
        stored = self._in_transaction(self._schemas, lambda transaction: transaction.get(key))
        return None if stored is None else stored.decode()

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""
        return self._in_transaction(
            self._positions, lambda transaction: {int(k): load_position(v) for k, v in transaction.cursor()}
        )

    def _in_transaction(
        self, database: "lmdb._Database", read: "Callable[[lmdb.Transaction[bytes]], T]"
    ) -> T:
        """Return what `read` returns in a transaction; raises StoreDamagedError for what it cannot decode."""
        try:
            try:
                with self._environment.begin(db=database) as transaction:
                    return read(transaction)
            except lmdb.MapResizedError:
                self._environment.set_mapsize(0)  # adopt the size that the writer has set
                with self._environment.begin(db=database) as transaction:
                    return read(transaction)
        except lmdb.Error as error:
            raise self._unreadable(error) from error
        except ValueError as error:
            raise StoreDamagedError.at(self._path, str(error)) from error


def _seek(cursor: "lmdb.Cursor[bytes]", first: bytes, after: bytes) -> bool:
    """Move to the smallest key that is `first` or greater, and greater than `after`; return whether it exists."""
    begin = max(first, after)
    key = begin[
        : layout.MAX_KEY_BYTES
    ]  # every stored key that is greater than this is also greater than `begin`
    there = cursor.set_range(key) if key else cursor.first()
    if there and cursor.key() == key and (begin == after or len(begin) > len(key)):
        return bool(cursor.next())
    return bool(there)
