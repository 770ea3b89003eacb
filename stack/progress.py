"""The steps of a start or stop of the stack, as reported to its caller."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One step of a component or a process: `state` is preparing, prepared, starting, ready, stopping or stopped.

    `elapsed_s` is the time since the previous step.
    """

    name: str
    state: str
    elapsed_s: float


Listener = Callable[[Progress], None]
