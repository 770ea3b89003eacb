"""An event whose state has arrived in this node's store: the raw material of a latency."""

from dataclasses import dataclass

from include.position import Position


@dataclass(frozen=True)
class Arrival:
    """The position of an event, and when the state that contains it was committed to the store (Unix s)."""

    position: Position
    at_s: float
