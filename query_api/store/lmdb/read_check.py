"""Reads a whole store and checks it: `python -m query_api.store.lmdb.read_check PATH`.

Exits with 0 when every record, position and schema is what was written, with DAMAGED when one is not, and with another status
when the store could not be read for another reason. Run it in a separate process, as integrity.py does: reading a damaged file can
kill the process.
"""

import errno
import sys
from pathlib import Path

import lmdb

from include.files import NO_SPACE
from query_api.store.lmdb import layout
from query_api.store.lmdb.record_format import BadRecordError, unpack

MAX_DATABASES = 2048
DAMAGED = 3
NOT_CHECKED = 4
# The machine lacks something, which says nothing about the store.
OUT_OF_RESOURCES = NO_SPACE | {
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EACCES,
    errno.EPERM,
}


def read_everything(path: Path) -> int:
    """Read every record and return their number; raises ValueError or lmdb.Error on the first bad one."""
    environment = lmdb.open(
        str(path), readonly=True, lock=False, create=False, max_dbs=MAX_DATABASES, readahead=True
    )
    page_bytes = environment.stat()["psize"]
    if (path / layout.DATA_FILE).stat().st_size < environment.info()["last_pgno"] * page_bytes:
        message = "its file is shorter than its pages"
        raise ValueError(message)
    records = 0
    with environment.begin(buffers=False) as transaction:
        for name, _ in transaction.cursor():
            database = environment.open_db(name, txn=transaction, create=False)
            counted = _read_database(transaction, name, database)
            if counted != transaction.stat(database)["entries"]:
                message = f"database {name!r} does not have as many entries as its header counts"
                raise ValueError(message)
            records += counted
    environment.close()
    return records


def _read_database(transaction: "lmdb.Transaction[bytes]", name: bytes, database: "lmdb._Database") -> int:
    count = 0
    for key, stored in transaction.cursor(db=database):
        if name == layout.POSITIONS:
            layout.load_position(stored)
        elif name == layout.BINDING:
            layout.load_binding(stored)
        elif name == layout.SCHEMAS:
            int(key)
        else:
            unpack(key, stored)
        count += 1
    return count


def main() -> int:
    """Check the store whose path is given on the command line."""
    try:
        read_everything(Path(sys.argv[1]))
    except (lmdb.Error, OSError, MemoryError) as error:
        sys.stderr.write(f"{error}\n")
        return NOT_CHECKED if _is_out_of_resources(error) else DAMAGED
    except (BadRecordError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"{error}\n")
        return DAMAGED
    return 0


def _is_out_of_resources(error: lmdb.Error | OSError | MemoryError) -> bool:
    return isinstance(error, MemoryError | lmdb.MemoryError) or layout.has_cause(error, OUT_OF_RESOURCES)


if __name__ == "__main__":
    sys.exit(main())
