"""What a local store is: the records of one version of a read model by key, and the positions they stand for.

One process writes it, any number of processes read it. A commit makes records and positions visible together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Change(NamedTuple):
    """One changelog record to be applied; `value` None deletes the key."""

    key: bytes
    event_count: int
    offset: int
    value: bytes | None


class HeldRecord(NamedTuple):
    """A record as the store holds it: the changelog's value, and the changelog offset that it came from."""

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

    next: the key to go on after; None when there are no more. total: records in the whole partition.
    """

    records: list[tuple[bytes, HeldRecord]]
    next: bytes | None
    total: int


@dataclass(frozen=True)
class Position:
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


class ReadableStore(Protocol):
    """What an HTTP worker needs of a store."""

    def get(self, partition: int, key: bytes) -> HeldRecord | None:
        """Return the record of a key, or None; raises StoreDamagedError when it is not what was written."""

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""

    def positions(self) -> dict[int, Position]:
        """Return the position of every partition that the store has any of."""


class ListableStore(ReadableStore, Protocol):
    """What listing a store needs."""

    def page(self, partition: int, after: bytes, limit: int, sample: Sample) -> Page:
        """Return at most `limit` records behind the key `after`; raises StoreDamagedError.

        Only so many keys are looked at, so a page of a small sample may be short, or empty, and still have a next one.
        """


class WritableStore(ReadableStore, Protocol):
    """What the materializer needs of a store."""

    def commit(
        self,
        changes: Mapping[int, Iterable[Change]],
        positions: Mapping[int, Position],
        schemas: Mapping[int, str],
    ) -> None:
        """Apply changes by partition, in their order, with the positions and schemas that belong to them, or nothing.

        A change is applied only if its event count is not below that of the record held: replays are harmless.
        Raises StoreFullError when there is no room.
        """

    def schemas(self) -> dict[int, str]:
        """Return every schema kept, by id."""

    def binding(self) -> Binding | None:
        """Return what the store was filled from; None when it is new."""

    def bind(self, binding: Binding) -> None:
        """Say what the store is filled from."""

    def forget(self, partition: int) -> None:
        """Remove a partition's records and position."""

    def record_count(self) -> int:
        """Return the number of records over all partitions."""

    def housekeep(self) -> None:
        """Do what has to be done now and then."""

    def close(self, *, sync: bool = True) -> None:
        """Close it; the store is whole on disk afterwards, unless it is not worth the waiting (`sync` False)."""
