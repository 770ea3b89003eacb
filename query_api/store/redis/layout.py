"""The layout of a store in Redis, below `<prefix>:<model>.v<N>`.

:<P>       hash of partition P: key -> record (stored_form.py). Its field with the empty name, which no key has, is the partition's head
:<P>:keys  sorted set of the partition's keys, all with the score 0, so that they are in the order of their bytes
:schemas   hash: schema id -> Avro schema as JSON

One command reads a record and the head, from the same commit. A partition without a head is not there: nothing was written yet, or
the server was emptied. The server runs each Lua script as one step, so a partition's records, order and head always fit together.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from include.position import Offsets
from query_api.errors import StoreDamagedError
from query_api.store.base import Binding, ChangelogPosition
from query_api.store.redis.server import Client
from query_api.store.stored_form import dump_binding, dump_position, load_binding, load_position

HEAD = b""
# Redis imposes no limit that matters; this is far above the fold's limit, and still fits into a URL.
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
    def load(cls, stored: bytes, store: Path) -> "Head":
        """Deserialize a head; raises StoreDamagedError of the store with this directory for invalid bytes."""
        try:
            fields = json.loads(stored)
            position, binding = fields["position"], fields["binding"]
            return cls(
                None if position is None else load_position(json.dumps(position).encode()),
                None if binding is None else load_binding(json.dumps(binding).encode()),
                fields["incarnation"],
                fields["is_complete"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise StoreDamagedError.at(store, f"head {stored[:200]!r}") from error


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


# The results of COMMIT and FORGET.
FENCED, DONE, DAMAGED = 0, 1, -1

# KEYS: hash, sorted set. ARGV: the head that the writer expects (empty: none), the new head, whether to empty the partition first (1),
# then for each change: `put`, `replace` or `delete`, the key, the record. `put` keeps a stored record that the new
# one does not supersede (include.position): see stored_form.py for where the number of events is. The writer is fenced unless the head is exactly what it has last seen: only then does its position
# say which changes are next.
COMMIT = """
local head = redis.call('HGET', KEYS[1], '') or ''
if head ~= ARGV[1] then return 0 end
if head == '' or ARGV[3] == '1' then
  redis.call('UNLINK', KEYS[1], KEYS[2])
elseif redis.call('HLEN', KEYS[1]) ~= redis.call('ZCARD', KEYS[2]) + 1 then
  return -1
end
for i = 4, #ARGV, 3 do
  local change, key, record = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if change == 'delete' then
    redis.call('HDEL', KEYS[1], key)
    redis.call('ZREM', KEYS[2], key)
  else
    local stored = redis.call('HGET', KEYS[1], key)
    if not stored or change == 'replace'
        or struct.unpack('>i8', record, 5) >= struct.unpack('>i8', stored, 5) then
      redis.call('HSET', KEYS[1], key, record)
      if not stored then redis.call('ZADD', KEYS[2], 0, key) end
    end
  end
end
redis.call('HSET', KEYS[1], '', ARGV[2])
return 1
"""

# KEYS: hash, sorted set. ARGV: the head that the writer expects.
FORGET = """
local head = redis.call('HGET', KEYS[1], '') or ''
if head ~= ARGV[1] then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2])
return 1
"""

# KEYS: hash, sorted set. ARGV: the bounds of the keys in the form of ZRANGE BYLEX, the maximum number.
# Returns the number of keys in the partition, those of the range, then the head and their records.
SCAN = """
local keys = redis.call('ZRANGE', KEYS[2], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', 0, ARGV[3])
local found = {redis.call('HGET', KEYS[1], '')}
for i = 1, #keys, 5000 do
  local records = redis.call('HMGET', KEYS[1], unpack(keys, i, math.min(i + 4999, #keys)))
  for _, record in ipairs(records) do found[#found + 1] = record end
end
return {redis.call('ZCARD', KEYS[2]), keys, found}
"""


def read_heads(client: Client, keys: StoreKeys, partitions: Iterable[int]) -> dict[int, bytes]:
    """Return the bytes of the heads of those partitions that have one."""
    wanted = list(partitions)
    pipeline = client.pipeline(transaction=False)
    for partition in wanted:
        pipeline.hget(keys.records(partition), HEAD.decode())
    found = pipeline.execute()
    return {p: head for p, head in zip(wanted, found, strict=True) if head is not None}
