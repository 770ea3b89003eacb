"""The reasons for which a lookup can fail: a closed set, each with one HTTP status and advice for the caller."""

from dataclasses import dataclass
from enum import Enum

from query_api.cluster.node_state import PartitionState


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
    UNKNOWN_KEY = Meaning(404, "unknown key", "No event of this key has been folded: check the key.")

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
