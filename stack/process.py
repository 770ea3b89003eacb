"""What the supervisor has to know about one process of the embedded stack."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Process:
    """One supervised process.

    `command` is an argument vector with absolute paths. `environment` is added to the supervisor's own.
    Processes start in ascending `start_order`; those of one order start together, and the next order starts once
    every `is_ready` of it has answered true (asked repeatedly, must not raise, must answer within 2 s).
    """

    name: str
    command: tuple[str, ...]
    start_order: int
    is_ready: Callable[[], bool]
    port: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    ready_timeout_s: int = 120
    stop_timeout_s: int = 15
    stop_signal: str = "TERM"
    kill_as_group: bool = True
