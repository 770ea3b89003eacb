"""Why a lookup has no answer: a closed set, each with one HTTP status and what its caller should do."""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Meaning:
    """What a failure reason is to an HTTP client.

    advice: what the caller should do.
    retry_after_s: after how long it is worth trying again; None when trying again will not help.
    """

    status: int
    title: str
    advice: str
    retry_after_s: int | None = None


class FailureReason(Enum):
    """Every reason there is. Modelled on Kafka Streams' query.FailureReason."""

    NOT_OWNER = Meaning(
        421,
        "not owner",
        "This node does not hold the key's partition: ask the owner that /api/partitions names.",
        1,
    )
    NOT_READY = Meaning(
        503,
        "not ready",
        "The key's partition is being read from the changelog or its owner is away: try again.",
        1,
    )
    NOT_UP_TO_BOUND = Meaning(
        503,
        "not up to the bound asked for",
        "The event at minOffset is not folded yet: try again, or ask without.",
        1,
    )
    UNKNOWN_MODEL = Meaning(404, "unknown model", "See /api/read-models for what there is.")
    UNKNOWN_KEY = Meaning(404, "unknown key", "No event of this key has been folded: check the key.")

    @property
    def slug(self) -> str:
        """The reason as it stands in a problem's type and in metrics."""
        return self.name.lower().replace("_", "-")


class LookupFailedError(Exception):
    """A lookup that has no answer, why, and in which detail."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
