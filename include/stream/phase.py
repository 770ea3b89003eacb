"""The phases of a streaming query, as the driver reports them."""

from enum import StrEnum


class Phase(StrEnum):
    """The phase of a query."""

    STARTING = "starting"
    CATCHING_UP = "catching up"
    REAL_TIME = "real time"
    BATCHES = "batches"  # keeps up, in batches of about a second: there were more events than it could fold in real time
    FAILED = "failed"  # waiting for the next attempt to start
    REFUSED = "refused"  # must not start for now; the last error is the reason
    STOPPED = "stopped"


# The query folds events as they arrive.
CONTINUOUS = frozenset({Phase.REAL_TIME, Phase.BATCHES})
# The query folds events.
FOLDING = CONTINUOUS | {Phase.CATCHING_UP}
