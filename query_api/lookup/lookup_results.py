"""The results of a lookup: a record or a page from this node's own store, with its age, or a failure.

The reasons for a failure are a closed set, each with one HTTP status and advice for the caller.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from include.nodes.peers import AS_OF_HEADER, LAG_HEADER
from query_api.cluster.node_state import PartitionState
from query_api.lookup.routing import KeyLocation, Role
from query_api.store.base import StoredRecord, StoreReader

T = TypeVar("T")
_AS_OF, _LAG = AS_OF_HEADER.lower(), LAG_HEADER.lower()


class LocalAnswer(NamedTuple):
    """A record from this node: the stored value, its fields without logical types, and the store it was read from."""

    location: KeyLocation
    partition: PartitionState
    role: Role
    record: StoredRecord
    raw: dict[str, Any]
    store: StoreReader


class RecordPage(NamedTuple):
    """Some records of a partition in the order of their keys; next, total: as of a store's page."""

    records: Sequence[tuple[bytes, StoredRecord]]
    next: bytes | None
    total: int


@dataclass(frozen=True)
class LocalPage(Generic[T]):
    """Some records of a partition, in any form, and the store they were read from, which had read the changelog up to `next_offset`."""

    location: KeyLocation
    partition: PartitionState
    page: T
    store: StoreReader
    next_offset: int


class AnswerAge(NamedTuple):
    """The time up to which an answer contains everything, as text, and the milliseconds since then."""

    as_of: str
    lag_ms: int

    @classmethod
    def of_partition(cls, partition: PartitionState) -> "AnswerAge":
        """Return the age of an answer from a partition of this node's store."""
        return cls(partition.as_of_text, partition.lag_ms())

    @classmethod
    def of_headers(cls, headers: Mapping[str, str]) -> "AnswerAge":
        """Return the age that another node's response states, by its headers in lower case. A response without them is as of now."""
        lag = headers.get(_LAG, "")
        lag_ms = int(lag) if lag.isascii() and lag.isdigit() else 0
        return cls(headers.get(_AS_OF) or _ago(lag_ms), lag_ms)

    @classmethod
    def oldest(cls, ages: Iterable["AnswerAge"]) -> "AnswerAge":
        """Return the age of an answer that is made of parts with these ages; without parts, it is as of now.

        Each node states ages by its own clock, so the earliest time and the greatest age need not be of one part.
        """
        parts = tuple(ages)
        if not parts:
            return cls(_ago(0), 0)
        return cls(min(part.as_of for part in parts), max(part.lag_ms for part in parts))

    def headers(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return the response headers that state the age."""
        return (AS_OF_HEADER, self.as_of), (LAG_HEADER, str(self.lag_ms))


def _ago(lag_ms: int) -> str:
    return datetime.fromtimestamp(time.time() - lag_ms / 1000, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Meaning:
    """The HTTP form of a failure reason.

    advice: what the caller should do.
    retry_after_s: when to retry; None when a retry does not help.
    """

    status: int
    title: str
    advice: str
    retry_after_s: int | None = None


class FailureReason(Enum):
    """The complete set of reasons. Modelled on Kafka Streams' query.FailureReason."""

    NOT_OWNER = Meaning(
        421,
        "not owner",
        "This node does not store the key's partition: send the request to its owner, listed at /api/partitions.",
        1,
    )
    NOT_READY = Meaning(
        503,
        "not ready",
        "The key's partition is being read from the changelog, or its owner is unavailable: try again.",
        1,
    )
    NOT_UP_TO_BOUND = Meaning(
        503,
        "not up to the requested bound",
        "The event at minOffset is not folded yet: retry, or omit minOffset.",
        1,
    )
    UNKNOWN_MODEL = Meaning(
        404, "unknown model", "Check the read model and the version: /api/read-models lists them."
    )
    UNKNOWN_KEY = Meaning(
        404,
        "unknown key",
        "No event of this key has been folded: check the key. For an event that was just appended, pass its offset as minOffset.",
    )

    @property
    def slug(self) -> str:
        """The reason's name in problem types and metrics."""
        return self.name.lower().replace("_", "-")


class LookupFailedError(Exception):
    """A lookup failed, for this reason, with a detail for people.

    partition: the state of the partition that was read; None if none was.
    """

    def __init__(self, reason: FailureReason, detail: str, partition: PartitionState | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.partition = partition
