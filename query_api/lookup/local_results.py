"""What a lookup in this node's own store returns."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from query_api.cluster.node_state import PartitionState
from query_api.lookup.key_location import KeyLocation, Role
from query_api.store.base import Page, StoredRecord, StoreReader


class LocalAnswer(NamedTuple):
    """A record from this node: the stored value, its fields without logical types, and the store it was read from."""

    place: KeyLocation
    partition: PartitionState
    role: Role
    record: StoredRecord
    raw: dict[str, Any]
    store: StoreReader


@dataclass(frozen=True)
class LocalPage:
    """Some records of a partition, and the store they were read from, which had read the changelog up to `next_offset`."""

    place: KeyLocation
    partition: PartitionState
    page: Page
    store: StoreReader
    next_offset: int
