"""Reads a store and checks it: `python -m query_api.store.lmdb.read_check PATH EXTENT PARENT_PID`.

EXTENT is a CheckExtent. Prints every second how many records it has read. Exits with 0 when everything that it has read is what was
written, with DAMAGED when something is not, and with another status when the store could not be read for another reason; the last
line is then the reason. Run it in a separate process, as integrity.py does: reading a damaged file can kill the process.
"""

import errno
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import lmdb

from include.files import NO_SPACE
from include.process import die_with_parent, lower_priority
from query_api.store.checks import CheckExtent
from query_api.store.lmdb import layout
from query_api.store.lmdb.integrity import DAMAGED
from query_api.store.stored_form import BadRecordError, load_binding, load_position, unpack

MAX_DATABASES = 2048
NOT_CHECKED = 4
IN_USE_NICENESS = 19
# A read transaction keeps old pages from being reused, so that the file grows. Reading this many records takes milliseconds.
CHUNK_RECORDS = 10_000
PROGRESS_INTERVAL_S = 1.0
# The machine lacks something, which says nothing about the store.
OUT_OF_RESOURCES = NO_SPACE | {
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EACCES,
    errno.EPERM,
}

# How an entry of each database is checked; those of all other databases are records.
CHECKS: dict[bytes, Callable[[bytes, bytes], object]] = {
    layout.POSITIONS: lambda _, stored: load_position(stored),
    layout.BINDING: lambda _, stored: load_binding(stored),
    layout.SCHEMAS: lambda key, _: int(key),
}

Entry = tuple[bytes, bytes]


class StoreChecker:
    """Reads one store; `records` counts what was read. Each method raises ValueError or lmdb.Error on the first bad entry."""

    def __init__(self, path: Path, extent: CheckExtent) -> None:
        self._extent = extent
        self._environment = lmdb.open(
            str(path),
            readonly=True,
            # Without a lock, a process that writes the store would reuse the pages that are being read.
            lock=extent is CheckExtent.IN_USE,
            create=False,
            max_dbs=MAX_DATABASES,
            max_readers=layout.MAX_READERS,
        )
        if layout.is_truncated(self._environment, path):
            raise ValueError(layout.TRUNCATED)
        self.records = 0
        self._total = 0
        self._next_report_s = 0.0

    def run(self) -> int:
        """Read what the extent demands, and return the number of records."""
        with self._environment.begin() as transaction:
            names = [name for name, _ in transaction.cursor()]
        databases = {name: self._environment.open_db(name, create=False) for name in names}
        with self._environment.begin() as transaction:
            self._total = sum(transaction.stat(database)["entries"] for database in databases.values())
        for name, database in databases.items():
            check = CHECKS.get(name, unpack)
            for entries in self._chunks(name, database):
                for key, stored in entries:
                    check(key, stored)
                self.records += len(entries)
                self._report()
        self._environment.close()
        return self.records

    def _chunks(self, name: bytes, database: "lmdb._Database") -> Iterator[list[Entry]]:
        if self._extent is CheckExtent.IN_USE:
            return self._in_use(database)
        if self._extent is CheckExtent.OPENING and name not in CHECKS:
            return self._ends(database)
        return self._all(name, database)

    def _all(self, name: bytes, database: "lmdb._Database") -> Iterator[list[Entry]]:
        count = 0
        with self._environment.begin(db=database) as transaction:
            cursor = iter(transaction.cursor())
            while entries := list(islice(cursor, CHUNK_RECORDS)):
                count += len(entries)
                yield entries
            if count != transaction.stat(database)["entries"]:
                message = f"database {name!r} does not have as many entries as its header counts"
                raise ValueError(message)

    def _in_use(self, database: "lmdb._Database") -> Iterator[list[Entry]]:
        """Yield the entries, each chunk from a transaction of its own, so that they can change in between."""
        entries = self._after(b"", database)
        while entries:
            yield entries
            entries = self._after(entries[-1][0], database)

    def _after(self, last: bytes, database: "lmdb._Database") -> list[Entry]:
        """Return the next entries with keys after `last`; with all keys when it is empty."""
        with self._begin(database) as transaction:
            cursor = transaction.cursor()
            there = cursor.set_range(last) if last else cursor.first()
            if there and cursor.key() == last:
                there = cursor.next()
            return list(islice(cursor.iternext(), CHUNK_RECORDS)) if there else []

    def _begin(self, database: "lmdb._Database") -> "lmdb.Transaction[bytes]":
        try:
            return self._environment.begin(db=database)
        except lmdb.MapResizedError:
            self._environment.set_mapsize(0)  # adopt the size that the writer has set
            return self._environment.begin(db=database)

    def _ends(self, database: "lmdb._Database") -> Iterator[list[Entry]]:
        """Yield the first and the last entry: reading them passes through the root of the database's tree."""
        with self._environment.begin(db=database) as transaction:
            cursor = transaction.cursor()
            yield [cursor.item() for move in (cursor.first, cursor.last) if move()]

    def _report(self) -> None:
        if time.monotonic() >= self._next_report_s:
            self._next_report_s = time.monotonic() + PROGRESS_INTERVAL_S
            sys.stdout.write(f"{self.records:,} of {self._total:,} records\n")
            sys.stdout.flush()


def main() -> int:
    """Check the store as the command line says."""
    path, extent, parent_pid = Path(sys.argv[1]), CheckExtent(sys.argv[2]), int(sys.argv[3])
    die_with_parent(parent_pid)
    if extent is CheckExtent.IN_USE:
        lower_priority(IN_USE_NICENESS)
    try:
        StoreChecker(path, extent).run()
    except (lmdb.Error, OSError, MemoryError) as error:
        sys.stdout.write(f"{error}\n")
        return NOT_CHECKED if _is_out_of_resources(error) else DAMAGED
    except (BadRecordError, ValueError, KeyError, TypeError) as error:
        sys.stdout.write(f"{error}\n")
        return DAMAGED
    return 0


def _is_out_of_resources(error: lmdb.Error | OSError | MemoryError) -> bool:
    if isinstance(error, MemoryError | lmdb.MemoryError | lmdb.ReadersFullError | lmdb.LockError):
        return True
    return layout.has_cause(error, OUT_OF_RESOURCES)


if __name__ == "__main__":
    sys.exit(main())
