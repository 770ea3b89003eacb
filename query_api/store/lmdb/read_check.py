"""Reads a whole store and checks it: `python -m query_api.store.lmdb.read_check PATH`.

Exits with 0 when every record, position and schema is what was written. Run it in a separate process, as integrity.py does: reading
a damaged file can kill the process.
"""

import sys
from pathlib import Path

import lmdb

from query_api.store.lmdb import layout
from query_api.store.lmdb.record_format import BadRecordError, unpack

MAX_DATABASES = 2048


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
    except (lmdb.Error, BadRecordError, ValueError, KeyError, TypeError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
