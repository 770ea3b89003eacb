"""How a store lies in LMDB: which databases, their keys and values, and how the environment is opened.

p<N>       key -> record (record_format.py), one database a changelog partition: dropped whole when it moves away
positions  partition -> position as JSON
schemas    schema id -> Avro schema as JSON
binding    "binding" -> cluster id, topic and topic id as JSON
"""

import json
from pathlib import Path

import lmdb

from query_api.store.base import Binding, Position

DATA_FILE = "data.mdb"
POSITIONS = b"positions"
SCHEMAS = b"schemas"
BINDING = b"binding"
OTHER_DATABASES = 3
# What LMDB finds when a file holds what it never wrote. Other errors say nothing about the file.
DAMAGE = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.PanicError,
    lmdb.VersionMismatchError,
)
# Every HTTP worker thread that reads at the same moment takes a slot.
MAX_READERS = 2048
SPARE_READ_TRANSACTIONS = 64
# LMDB's limit, compiled in.
MAX_KEY_BYTES = 511


def open_environment(path: Path, *, map_size_bytes: int, partitions: int, readonly: bool) -> lmdb.Environment:
    """Open a store's environment. Once per process, after any fork."""
    return lmdb.open(
        str(path),
        map_size=map_size_bytes,
        max_dbs=partitions + OTHER_DATABASES,
        max_readers=MAX_READERS,
        max_spare_txns=SPARE_READ_TRANSACTIONS,
        readonly=readonly,
        create=not readonly,
        # A killed process loses nothing; a machine that dies may, and the store is then rebuilt (incarnation.py).
        sync=False,
        metasync=False,
        readahead=False,
        meminit=False,
    )


def partition_database(partition: int) -> bytes:
    """Return the name of a partition's database."""
    return b"p%d" % partition


def number_key(number: int) -> bytes:
    """Return the key of a partition or schema id."""
    return b"%d" % number


def dump_position(position: Position) -> bytes:
    """Return a position's bytes."""
    fields = {"next_offset": position.next_offset, "as_of": position.as_of, "folded": dict(position.folded)}
    return json.dumps(fields).encode()


def load_position(stored: bytes) -> Position:
    """Return the position; raises ValueError when these are not one's bytes."""
    fields = json.loads(stored)
    folded = {int(partition): offset for partition, offset in fields["folded"].items()}
    return Position(fields["next_offset"], fields["as_of"], folded)


def dump_binding(binding: Binding) -> bytes:
    """Return a binding's bytes."""
    return json.dumps(
        {"cluster_id": binding.cluster_id, "topic": binding.topic, "topic_id": binding.topic_id}
    ).encode()


def load_binding(stored: bytes) -> Binding:
    """Return the binding; raises ValueError, KeyError or TypeError when these are not one's bytes."""
    return Binding(**json.loads(stored))
