"""The layout of a store in LMDB: its databases, their keys and values, and how the environment is opened.

p<N>       key -> record (stored_form.py), one database for each changelog partition, dropped when the partition moves away
positions  partition -> position as JSON
schemas    schema id -> Avro schema as JSON
binding    "binding" -> cluster id, topic and topic id as JSON
"""

import os
from collections.abc import Collection
from pathlib import Path

import lmdb

DATA_FILE = "data.mdb"
LOCK_FILE = "lock.mdb"
POSITIONS = b"positions"
SCHEMAS = b"schemas"
BINDING = b"binding"
OTHER_DATABASES = 3
# LMDB raises these for a corrupt file. Its other errors do not indicate damage: the disk is full, or fails.
DAMAGE = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
)
# Each HTTP worker thread occupies a slot while it reads.
MAX_READERS = 2048
SPARE_READ_TRANSACTIONS = 64
# LMDB needs a cache line for each slot, and a header.
LOCK_FILE_BYTES = MAX_READERS * 64 + 4096
# The unit of st_blocks in the result of stat(2).
STAT_BLOCK_BYTES = 512
# LMDB's compiled-in limit.
MAX_KEY_BYTES = 511
TRUNCATED = "its file is shorter than its pages"


def open_environment(path: Path, *, map_size_bytes: int, partitions: int, readonly: bool) -> lmdb.Environment:
    """Open a store's environment. A process opens it once, after any fork."""
    return lmdb.open(
        str(path),
        map_size=map_size_bytes,
        max_dbs=partitions + OTHER_DATABASES,
        max_readers=MAX_READERS,
        max_spare_txns=SPARE_READ_TRANSACTIONS,
        readonly=readonly,
        create=not readonly,
        # A killed process loses no data. A machine crash may; the store is then rebuilt (directory.py).
        sync=False,
        metasync=False,
        readahead=False,
        meminit=False,
    )


def is_truncated(environment: lmdb.Environment, path: Path) -> bool:
    """Whether the data file is shorter than its pages: touching a page beyond its end kills the process with SIGBUS."""
    # The last page may be allocated but not yet written.
    least_bytes: int = environment.info()["last_pgno"] * environment.stat()["psize"]
    return (path / DATA_FILE).stat().st_size < least_bytes


def allocate_lock_file(path: Path) -> None:
    """Give the file with the readers' slots all of its space before LMDB opens it; raises OSError when the disk is full.

    LMDB maps the file and leaves it sparse. The kernel kills a process that touches a new page of a mapped file on a full disk.
    """
    lock_file = path / LOCK_FILE
    if not hasattr(os, "posix_fallocate"):
        return
    status = lock_file.stat() if lock_file.exists() else None
    if status is not None and status.st_blocks * STAT_BLOCK_BYTES >= status.st_size:
        # Not opened here: closing it would release the locks that this process holds on it, if it reads the store as well.
        return
    # Other processes may have mapped an existing file: it keeps its size.
    size = status.st_size if status is not None else LOCK_FILE_BYTES
    with lock_file.open("ab") as file:
        os.posix_fallocate(file.fileno(), 0, size)


def partition_database(partition: int) -> bytes:
    """Return the name of a partition's database."""
    return b"p%d" % partition


def number_key(number: int) -> bytes:
    """Return the key of a partition or schema id."""
    return b"%d" % number


def has_cause(error: lmdb.Error | OSError, causes: Collection[int]) -> bool:
    """Whether the operating system's reason for an error is one of these error numbers; LMDB gives it as text only."""
    if isinstance(error, OSError):
        return error.errno in causes
    return any(os.strerror(number) in str(error) for number in causes)
