"""Reading a store from an HTTP worker: read-only, never blocked by the writer, reopened when the store was replaced."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import lmdb

from query_api.errors import StoreDamagedError, StoreMissingError
from query_api.store.base import HeldRecord, Page, Position, Sample
from query_api.store.lmdb import layout
from query_api.store.lmdb.record_format import BadRecordError, unpack

# A stat costs 1 us; a replaced store is noticed after this long.
REPLACED_CHECK_S = 0.05
# Of a small sample: as many keys are passed over in one page, which takes some 20 ms.
SCANNED_KEYS = 20_000

T = TypeVar("T")


class LmdbReader:
    """A read-only view of the store at `path`. Safe for use by several threads."""

    def __init__(self, path: Path, *, map_size_bytes: int, partitions: int) -> None:
        self._path = path
        self._data_file = path / layout.DATA_FILE
        self._inode = self._inode_on_disk()
        try:
            self._environment = layout.open_environment(
                path, map_size_bytes=map_size_bytes, partitions=partitions, readonly=True
            )
            self._check_length()
            # All at once, before any transaction: LMDB does not let several threads open databases beside each other.
            self._positions = self._environment.open_db(layout.POSITIONS, create=False)
            self._schemas = self._environment.open_db(layout.SCHEMAS, create=False)
            self._records = [
                self._environment.open_db(layout.partition_database(p), create=False)
                for p in range(partitions)
            ]
        except lmdb.Error as error:
            raise self._unreadable(error) from error
        self._checked_at = time.monotonic()

    def _inode_on_disk(self) -> int:
        try:
            return self._data_file.stat().st_ino
        except OSError as error:
            raise StoreMissingError(f"There is no store at {self._path}: wait until it is built.") from error

    def _check_length(self) -> None:
        """Refuse a truncated file: touching a page beyond its end kills the process with SIGBUS."""
        info = self._environment.info()
        page_bytes = self._environment.stat()["psize"]
        # The very last page may be allocated and not written yet.
        if self._data_file.stat().st_size < info["last_pgno"] * page_bytes:
            raise StoreDamagedError.at(self._path, "its file is shorter than its pages")

    def _unreadable(self, error: lmdb.Error) -> StoreDamagedError | StoreMissingError:
        if isinstance(error, layout.DAMAGE):
            return StoreDamagedError.at(self._path, str(error))
        return StoreMissingError(
            f"The store at {self._path} cannot be read now ({error}): wait until it is built."
        )

    def is_replaced(self) -> bool:
        """Whether another store has taken this one's place on disk (looked up every 50 ms at most)."""
        now = time.monotonic()
        if now - self._checked_at < REPLACED_CHECK_S:
            return False
        self._checked_at = now
        try:
            return self._inode_on_disk() != self._inode
        except StoreMissingError:
            return True

    def get(self, partition: int, key: bytes) -> HeldRecord | None:
        """Return the record of a key, or None; raises StoreDamagedError when it is not what was written."""
        if not 0 < len(key) <= layout.MAX_KEY_BYTES:
            return None
        stored = self._read(self._records[partition], key)
        if stored is None:
            return None
        try:
            return unpack(key, stored)
        except BadRecordError as error:
            raise StoreDamagedError.at(self._path, str(error)) from error

    def page(self, partition: int, after: bytes, limit: int, sample: Sample) -> Page:
        """Return at most `limit` records behind the key `after`, as of one moment; see ListableStore.page."""
        database = self._records[partition]

        def read(transaction: "lmdb.Transaction[bytes]") -> Page:
            cursor = transaction.cursor(db=database)
            found: list[tuple[bytes, HeldRecord]] = []
            there = cursor.set_range(after) if after else cursor.first()
            if there and cursor.key() == after:
                there = cursor.next()
            last = after
            for _ in range(SCANNED_KEYS):
                if not there or len(found) == limit:
                    break
                last = cursor.key()
                if sample.buckets == 1 or crc32(last) % sample.buckets == sample.bucket:
                    found.append((last, unpack(last, cursor.value())))
                there = cursor.next()
            return Page(found, last if there else None, transaction.stat(database)["entries"])

        try:
            return self._in_transaction(database, read)
        except BadRecordError as error:
            raise StoreDamagedError.at(self._path, str(error)) from error

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""
        stored = self._read(self._schemas, layout.number_key(schema_id))
        return None if stored is None else stored.decode()

    def positions(self) -> dict[int, Position]:
        """Return the position of every partition that the store has any of."""
        try:
            with self._environment.begin(db=self._positions) as transaction:
                return {int(k): layout.load_position(v) for k, v in transaction.cursor()}
        except ValueError as error:
            raise StoreDamagedError.at(self._path, str(error)) from error
        except lmdb.Error as error:
            raise self._unreadable(error) from error

    def _read(self, database: "lmdb._Database", key: bytes) -> bytes | None:
        return self._in_transaction(database, lambda transaction: transaction.get(key))

    def _in_transaction(
        self, database: "lmdb._Database", read: "Callable[[lmdb.Transaction[bytes]], T]"
    ) -> T:
        try:
            with self._environment.begin(db=database) as transaction:
                return read(transaction)
        except lmdb.MapResizedError:
            self._environment.set_mapsize(0)  # adopt the size that the writer has given it
            with self._environment.begin(db=database) as transaction:
                return read(transaction)
        except lmdb.Error as error:
            raise self._unreadable(error) from error
