"""The layout of a store in Redis, below `<prefix>:<model>.v<N>`.

:<P>       hash of partition P: key -> record (record_format.py). Its field with the empty name, which no key has, is the partition's head
:<P>:keys  sorted set of the partition's keys, all with the score 0, so that they are in the order of their bytes
:schemas   hash: schema id -> Avro schema as JSON

One command reads a record and the head, from the same commit. A partition without a head is not there: nothing was written yet, or
the server was emptied.
"""

import json
import secrets
from dataclasses import dataclass, field, replace

from include.position import Offsets
from query_api.store.base import Binding, ChangelogPosition
from query_api.store.json_form import dump_binding, dump_position, load_binding, load_position

HEAD = b""
# As in memory. Redis imposes no limit that matters; this is far above the fold's limit, and still fits into a URL.
MAX_KEY_BYTES = 4096
NOTHING_READ = ChangelogPosition(0, 0.0, Offsets())


@dataclass(frozen=True)
class Head:
    """What a partition's hash says about the partition.

    position: how far its changelog was read; None before the first record.
    binding: the changelog that it was filled from; None if that was not known.
    incarnation: another one each time that it is filled from the beginning.
    is_complete: whether it was read up to its end since then. Until then, keys are missing.
    """

    position: ChangelogPosition | None = None
    binding: Binding | None = None
    incarnation: str = field(default_factory=secrets.token_hex)
    is_complete: bool = False

    @property
    def next_offset(self) -> int:
        """The first changelog offset that has not been read."""
        return 0 if self.position is None else self.position.next_offset

    def at(self, position: ChangelogPosition) -> "Head":
        """Return the head after a commit."""
        return replace(self, position=position)

    def dump(self) -> bytes:
        """Serialize the head."""
        fields = {
            "position": None if self.position is None else json.loads(dump_position(self.position)),
            "binding": None if self.binding is None else json.loads(dump_binding(self.binding)),
            "incarnation": self.incarnation,
            "is_complete": self.is_complete,
        }
        return json.dumps(fields).encode()

    @classmethod
    def load(cls, stored: bytes) -> "Head":
        """Deserialize a head; raises ValueError, KeyError or TypeError for invalid bytes."""
        fields = json.loads(stored)
        position, binding = fields["position"], fields["binding"]
        return cls(
            None if position is None else load_position(json.dumps(position).encode()),
            None if binding is None else load_binding(json.dumps(binding).encode()),
            fields["incarnation"],
            fields["is_complete"],
        )


@dataclass(frozen=True)
class StoreKeys:
    """The names of a store's keys. name: of the store, `<model>.v<N>`."""

    prefix: str
    name: str

    def records(self, partition: int) -> str:
        """Return the name of a partition's hash."""
        return f"{self.prefix}:{self.name}:{partition}"

    def order(self, partition: int) -> str:
        """Return the name of a partition's sorted set."""
        return f"{self.records(partition)}:keys"

    @property
    def schemas(self) -> str:
        """The name of the hash of schemas."""
        return f"{self.prefix}:{self.name}:schemas"

    def of_partitions(self, partitions: int) -> list[str]:
        """Return the names of all keys but the schemas'."""
        return [name for p in range(partitions) for name in (self.records(p), self.order(p))]
