"""The steps of a start or a stop of the stack, as its caller observes them."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One step of a component or a process: `state` is preparing, prepared, starting, ready, stopping or stopped.

    `elapsed_s` is the time since the step before it.
    """

    name: str
    state: str
    elapsed_s: float


Listener = Callable[[Progress], None]
