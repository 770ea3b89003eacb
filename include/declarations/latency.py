"""How soon a query handles an event, as its declaration wants it."""

from enum import StrEnum


class Latency(StrEnum):
    """MILLISECONDS: real-time mode, which keeps a task slot for each partition. SECOND: batches of about a second.

    Batches share two task slots with each other, and each costs processor time only when there are new events.
    """

    MILLISECONDS = "milliseconds"
    SECOND = "second"
