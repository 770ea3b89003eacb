"""What a local store is: the records of one version of a read model by key, and the positions they belong to.

A store belongs to one directory. One process writes it, any number of processes read it. A commit makes records,
positions and schemas visible together. Keys are ordered as bytes. A backend is a folder beside this file
(backends.py finds it); decision 11 compares the two that there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol


class Change(NamedTuple):
    """One changelog record to apply; `value` None deletes the key."""

    key: bytes
    event_count: int
    offset: int
    value: bytes | None


class StoredRecord(NamedTuple):
    """A record in a store: the changelog's value, its event count, and the changelog offset that it came from."""

    value: bytes
    event_count: int
    offset: int


@dataclass(frozen=True)
class Sample:
    """The keys whose CRC-32 leaves `bucket` when divided by `buckets`; with 1 bucket, all of them."""

    bucket: int = 0
    buckets: int = 1


class Page(NamedTuple):
    """Some records of a partition in the order of their keys.

    next: the key after which the next page begins; None after the last page. total: records in the whole partition.
    """

    records: list[tuple[bytes, StoredRecord]]
    next: bytes | None
    total: int


@dataclass(frozen=True)
class KeyRange:
    """The keys that begin with `prefix`, are `start` or greater, and less than `end` (None: no upper bound)."""

    prefix: bytes = b""
    start: bytes = b""
    end: bytes | None = None

    @property
    def first(self) -> bytes:
        """The smallest key that can be in the range."""
        return max(self.prefix, self.start)

    @property
    def upper(self) -> bytes | None:
        """The smallest key that is greater than every key in the range; None: no upper bound."""
        bounds = [bound for bound in (self.end, _successor(self.prefix)) if bound is not None]
        return min(bounds, default=None)


def _successor(prefix: bytes) -> bytes | None:
    """Return the smallest key that is greater than all keys with this prefix; None when there is no such key."""
    head = prefix.rstrip(b"\xff")
    return head[:-1] + bytes([head[-1] + 1]) if head else None


ALL_KEYS = KeyRange()
ALL_RECORDS = Sample()


@dataclass(frozen=True)
class ChangelogPosition:
    """How far one changelog partition has been read.

    next_offset: the first changelog offset that has not been read.
    as_of: Unix time in seconds at which the partition was last known to have been read so far.
    folded: source partition -> newest source offset seen in a state record.
    """

    next_offset: int
    as_of: float
    folded: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Binding:
    """Which incarnation of which changelog a store was filled from; offsets mean nothing in another one."""

    cluster_id: str
    topic: str
    topic_id: str


class StoreReader(Protocol):
    """A view of a store from any process, for use by several threads. It is closed when its last reference is gone.

    Each method sees one commit, whole. Each raises StoreDamagedError when it finds what was never written, and
    StoreMissingError when the store is gone; a backend may instead answer from a store that was removed while the
    reader had it open.
    """

    def is_replaced(self) -> bool:
        """Whether the store is gone, or another one stands in its place: this reader is then out of date."""

    def get(self, partition: int, key: bytes) -> StoredRecord | None:
        """Return the record of a key, or None."""

    def get_many(self, partition: int, keys: Sequence[bytes]) -> dict[bytes, StoredRecord]:
        """Return the records of those keys that have one, all as of one commit."""

    def scan(
        self,
        partition: int,
        keys: KeyRange = ALL_KEYS,
        *,
        after: bytes = b"",
        limit: int,
        sample: Sample = ALL_RECORDS,
    ) -> Page:
        """Return at most `limit` records of a range of keys, in the order of their keys.

        after: leave out this key and those before it: the `next` of the page before; empty for the first page.
        The scan reads a bounded number of keys, so a page of a small sample may be short, or empty, and yet have a
        next one.
        """

    def count(self, partition: int) -> int:
        """Return the number of records in a partition."""

    def size_bytes(self) -> int:
        """Return how much disk or memory the store takes."""

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""


class StoreWriter(Protocol):
    """The one writer of a store. Not for use by several threads at once. Any method may raise StoreDamagedError."""

    @property
    def max_key_bytes(self) -> int:
        """The length of the longest key that the store takes; every key has at least one byte."""

    def commit(
        self,
        changes: Mapping[int, Iterable[Change]],
        positions: Mapping[int, ChangelogPosition],
        schemas: Mapping[int, str],
    ) -> None:
        """Apply changes by partition, in their order, with the positions and schemas that belong to them, or nothing.

        A change is applied only if its event count is not below that of the stored record, so replays are harmless. A
        deletion removes whatever is stored, and what follows it counts.
        Raises StoreFullError when there is no room.
        """

    def schemas(self) -> dict[int, str]:
        """Return every stored schema, by id."""

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""

    def binding(self) -> Binding | None:
        """Return what the store was filled from; None for a new store."""

    def bind(self, binding: Binding) -> None:
        """Store what the store is filled from."""

    def forget(self, partition: int) -> None:
        """Remove a partition's records and position."""

    def record_count(self) -> int:
        """Return the number of records over all partitions."""

    def housekeep(self) -> None:
        """Do periodic maintenance; called about once a second."""

    def close(self, *, sync: bool = True) -> None:
        """Close the store; with `sync`, what a disk holds of it is complete afterwards."""


class StoreBackend(Protocol):
    """One kind of store. `path` is a store's directory; the backend creates the files in it, the caller removes it."""

    @property
    def max_key_bytes(self) -> int:
        """The length of the longest key that the backend's stores take."""

    def exists(self, path: Path) -> bool:
        """Whether the backend's own files are in the directory; false also for another backend's store."""

    def damage(self, path: Path) -> str | None:
        """Return why the store in an existing directory cannot be used, or None.

        It may read the whole store. No process has the store open for writing meanwhile.
        """

    def open_writer(self, path: Path, partitions: int) -> StoreWriter:
        """Open the store for writing, and create it where there is none; raises StoreDamagedError."""

    def open_reader(self, path: Path, partitions: int) -> StoreReader:
        """Open the store for reading; raises StoreMissingError or StoreDamagedError."""
