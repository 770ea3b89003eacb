"""The interface of a local store: the records of one version of a read model by key, and the positions they belong to.

A store has its own directory. One process writes it, any number of processes read it. A commit makes records,
positions and schemas visible together. Keys are ordered as bytes. A backend is a folder beside this file
(backends.py finds it); decision 11 describes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from include.boot_clock import Moment, age_s, boot_id
from include.position import Offsets, supersedes
from query_api.store.checks import CheckExtent, StoreCheck


class Change(NamedTuple):
    """One changelog record to apply; `value` None deletes the key."""

    key: bytes
    event_count: int
    offset: int
    value: bytes | None


class StoredRecord(NamedTuple):
    """A record in a store: the changelog's value, its event count, and its changelog offset."""

    value: bytes
    event_count: int
    offset: int


class Page(NamedTuple):
    """Some records of a partition in the order of their keys, in the form in which the store keeps them (stored_form.py).

    next: the key after which the next page starts; None after the last page. total: records in the whole partition.
    """

    keys: Sequence[bytes]
    stored: Sequence[bytes]
    next: bytes | None
    total: int


@dataclass(frozen=True)
class KeyRange:
    """The keys that start with `prefix`, are `start` or greater, and less than `end` (None: no upper bound)."""

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


@dataclass(frozen=True)
class ChangelogPosition:
    """How far one changelog partition has been read.

    next_offset: the first changelog offset that has not been read.
    as_of: Unix time in seconds at which the partition was last known to have been read up to this position.
    folded: source partition -> the offset after the newest source offset in the state records read.
    boot_id, as_of_boot_s: `as_of` by the boot clock, and the boot of the machine; empty in a store of an earlier release.
    """

    next_offset: int
    as_of: float
    folded: Offsets = field(default_factory=Offsets)
    boot_id: str = ""
    as_of_boot_s: float = 0.0

    @classmethod
    def at(cls, next_offset: int, as_of: Moment, folded: Offsets | None = None) -> "ChangelogPosition":
        """Return a position that was current at a moment of this boot."""
        return cls(next_offset, as_of.unix_s, folded or Offsets(), boot_id(), as_of.boot_s)

    def confirmed(self, as_of: Moment) -> "ChangelogPosition":
        """Return the same position, which was still current at a later moment."""
        return ChangelogPosition.at(self.next_offset, as_of, self.folded)

    def age_s(self) -> float:
        """Return the seconds since `as_of`; after a restart of the machine, as far as the wall clock can tell."""
        return age_s(self.as_of, self.as_of_boot_s if self.boot_id == boot_id() else None)


@dataclass(frozen=True)
class Binding:
    """The incarnation of the changelog that a store was filled from; offsets are meaningless in any other."""

    cluster_id: str
    topic: str
    topic_id: str


class StoreReader(Protocol):
    """A view of a store from any process, thread-safe. It closes when its last reference is dropped.

    Each call reads from one commit. Each raises StoreDamagedError when it finds data that was never written, and
    StoreMissingError when the store is gone; a backend may instead answer from a store that was removed while the
    reader had it open.
    """

    def is_replaced(self) -> bool:
        """Whether the store was removed or replaced: this reader is then out of date."""

    def get(self, partition: int, key: bytes) -> StoredRecord | None:
        """Return the record of a key, or None."""

    def scan(self, partition: int, keys: KeyRange = ALL_KEYS, *, after: bytes = b"", limit: int) -> Page:
        """Return at most `limit` records of a range of keys, in the order of their keys. Their checksums are not compared.

        after: return only greater keys: the `next` of the previous page; empty for the first page.
        """

    def count(self, partition: int) -> int:
        """Return the number of records in a partition."""

    def size_bytes(self) -> int:
        """Return the store's size on disk or in memory."""

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""


class StoreWriter(Protocol):
    """The only writer of a store, or of some partitions of a shared one. Not thread-safe.

    Any method may raise StoreDamagedError, and StoreWriteError; that of a shared store StoreFencedError.
    is_shared: whether the writers and readers of all nodes have the same store.
    """

    is_shared: bool

    @property
    def max_key_bytes(self) -> int:
        """The maximum length of a key in this store; every key has at least one byte."""

    def commit(
        self,
        changes: Mapping[int, Iterable[Change]],
        positions: Mapping[int, ChangelogPosition],
        schemas: Mapping[int, str],
    ) -> None:
        """Atomically apply changes by partition, in order, with their positions and schemas.

        A change is applied only if its event count is not below that of the stored record, so replays are harmless. A
        deletion removes any stored record, and later changes of the key start from nothing.
        Then wakes the readers that wait for a commit (commit_signal.py).
        Raises StoreFullError when there is no space left.
        """

    def schemas(self) -> dict[int, str]:
        """Return every stored schema, by id."""

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""

    def binding(self) -> Binding | None:
        """Return the changelog incarnation that the store was filled from; None for a new store."""

    def bind(self, binding: Binding) -> None:
        """Record the changelog incarnation that the store is filled from."""

    def forget(self, partition: int) -> None:
        """Remove a partition's records and position."""

    def adopt(self, partitions: Iterable[int]) -> dict[int, ChangelogPosition]:
        """Begin to write partitions, and return the positions of those that the store has records of."""

    def release(self, partition: int) -> None:
        """Write a partition no longer; a store of this node alone also forgets it."""

    def mark_complete(self, partitions: Iterable[int]) -> None:
        """Note that partitions were read up to their end: from then on, readers of a shared store may answer from them."""

    def readable_positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that readers may answer from."""

    def record_count(self) -> int:
        """Return the number of records over all partitions."""

    def housekeep(self) -> None:
        """Do periodic maintenance; called about once a second."""

    def close(self, *, sync: bool = True) -> None:
        """Close the store; with `sync`, all of its data on disk is complete afterwards."""


class StoreBackend(Protocol):
    """One kind of store. `path` is a store's directory; the backend creates the files in it, the caller removes it.

    is_shared: as in StoreWriter. The directory of a shared store then only says that this node uses it.
    """

    is_shared: bool

    @property
    def max_key_bytes(self) -> int:
        """The maximum length of a key in the backend's stores."""

    def exists(self, path: Path) -> bool:
        """Whether the directory contains this backend's files; false for another backend's store."""

    def begin_check(self, path: Path, extent: CheckExtent) -> StoreCheck:
        """Begin to check the store in an existing directory; it may take as long as reading the store.

        Except for IN_USE, no process may have the store open for writing. Raises StoreWriteError when it cannot begin now.
        """

    def open_writer(self, path: Path, partitions: int) -> StoreWriter:
        """Open the store for writing, and create it if it does not exist; raises StoreDamagedError."""

    def open_reader(self, path: Path, partitions: int) -> StoreReader:
        """Open the store for reading; raises StoreMissingError or StoreDamagedError."""

    def remove(self, path: Path) -> None:
        """Remove what the store has outside of its directory, if this node uses it; raises StoreWriteError."""


def newest_changes(changes: Iterable[Change]) -> tuple[dict[bytes, Change], set[bytes]]:
    """Return the effective change of each key, and the keys that the batch deletes at any point.

    After a deletion, later changes of the key apply regardless of the record stored before.
    """
    newest: dict[bytes, Change] = {}
    deleted: set[bytes] = set()
    for change in changes:
        earlier = newest.get(change.key)
        if change.value is None:
            deleted.add(change.key)
        elif (
            earlier is not None
            and earlier.value is not None
            and not supersedes(change.event_count, earlier.event_count)
        ):
            continue
        newest[change.key] = change
    return newest, deleted
