"""The layout of a store in LMDB: its databases, their keys and values, and how the environment is opened.

p<N>       key -> record (record_format.py), one database for each changelog partition, dropped when the partition moves away
positions  partition -> position as JSON
schemas    schema id -> Avro schema as JSON
binding    "binding" -> cluster id, topic and topic id as JSON
"""

import json
from pathlib import Path

import lmdb

from include.known_fields import known_fields
from include.position import Offsets
from query_api.store.base import Binding, ChangelogPosition

DATA_FILE = "data.mdb"
POSITIONS = b"positions"
SCHEMAS = b"schemas"
BINDING = b"binding"
OTHER_DATABASES = 3
# LMDB raises these for a corrupt file. Its other errors do not indicate damage.
DAMAGE = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.PanicError,
    lmdb.VersionMismatchError,
)
# Each HTTP worker thread occupies a slot while it reads.
MAX_READERS = 2048
SPARE_READ_TRANSACTIONS = 64
# LMDB's compiled-in limit.
MAX_KEY_BYTES = 511


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


def partition_database(partition: int) -> bytes:
    """Return the name of a partition's database."""
    return b"p%d" % partition


def number_key(number: int) -> bytes:
    """Return the key of a partition or schema id."""
    return b"%d" % number


def dump_position(position: ChangelogPosition) -> bytes:
    """Serialize a position."""
    fields = {
        "next_offset": position.next_offset,
        "as_of": position.as_of,
        "folded": position.folded.newest(),
    }
    return json.dumps(fields).encode()


def load_position(stored: bytes) -> ChangelogPosition:
    """Deserialize a position; raises ValueError for invalid bytes."""
    fields = json.loads(stored)
    folded = Offsets.from_newest_json(fields["folded"])
    return ChangelogPosition(fields["next_offset"], fields["as_of"], folded)


def dump_binding(binding: Binding) -> bytes:
    """Serialize a binding."""
    return json.dumps(
        {"cluster_id": binding.cluster_id, "topic": binding.topic, "topic_id": binding.topic_id}
    ).encode()


def load_binding(stored: bytes) -> Binding:
    """Deserialize a binding; raises ValueError, KeyError or TypeError for invalid bytes."""
    return Binding(**known_fields(Binding, json.loads(stored)))
