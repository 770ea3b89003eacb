"""How soon a query handles an event, as its declaration wants it; an operator can override it (latency_override.py)."""

from enum import StrEnum

from include.errors import ReadModelError


class Latency(StrEnum):
    """MILLISECONDS: real-time mode, which keeps a task slot for each partition. SECOND: batches of FOLDLAKE_STREAM_BATCH_INTERVAL_MS.

    Batches share two task slots with each other, and each costs processor time only when there are new events.
    """

    MILLISECONDS = "milliseconds"
    SECOND = "second"


def require_latency(declaration: str, latency: object) -> None:
    """Raise ReadModelError unless it is a latency; `declaration` names what has it, such as `route trend`."""
    if latency not in set(Latency):
        raise ReadModelError(f"latency of {declaration} is {latency!r}: allowed: {', '.join(Latency)}.")
