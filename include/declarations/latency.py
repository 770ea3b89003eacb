"""How soon a query handles an event, as its declaration wants it; an operator can override it (latency_override.py)."""

from datetime import timedelta
from enum import StrEnum

from include.errors import ReadModelError


class Latency(StrEnum):
    """How soon a query handles an event.

    MILLISECONDS: real-time mode, which keeps a task slot for each partition. SECOND: batches of FOLDLAKE_STREAM_BATCH_INTERVAL_MS.
    Batches share two task slots with each other, and each costs processor time only when there are new events.
    """

    MILLISECONDS = "milliseconds"
    SECOND = "second"


def require_latency(declaration: str, latency: object) -> None:
    """Raise ReadModelError unless it is a latency; `declaration` names what has it, such as `route trend`."""
    if latency not in set(Latency):
        raise ReadModelError(f"latency of {declaration} is {latency!r}: allowed: {', '.join(Latency)}.")


# Shorter ones save no records; with a longer one, events that wait for the next batch would count as a standstill.
SHORTEST_EMIT_INTERVAL, LONGEST_EMIT_INTERVAL = timedelta(milliseconds=100), timedelta(seconds=30)


def require_emit_interval(read_model: str, emit_every: timedelta | None) -> None:
    """Raise ReadModelError unless it is None, or an interval within the allowed bounds.

    The interval is that of batches: each record is then still a function of its key and event count.
    """
    if emit_every is None:
        return
    if isinstance(emit_every, timedelta) and SHORTEST_EMIT_INTERVAL <= emit_every <= LONGEST_EMIT_INTERVAL:
        return
    raise ReadModelError(
        f"emit_every of read model {read_model} is {emit_every!r}: allowed: None, or a timedelta from 0.1 s to 30 s."
    )
