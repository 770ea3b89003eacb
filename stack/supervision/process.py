"""What the supervisor has to know about one process of the embedded stack."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Process:
    """One supervised process.

    `command` is an argument vector with absolute paths. `environment` is added to the supervisor's own.
    Processes start in ascending `start_order`; those of one order start together, and the next order starts once
    every `is_ready` of it has answered true (asked repeatedly, must not raise, must answer within 2 s).
    `port_setting` names the variable that moves `port`, for whoever finds the port taken; `also_listens` maps the
    variables of further ports to these. `reads_settings` is false for a server that is not ours: then its environment
    has none of our settings, and a change of one does not start it anew. `reads_declarations` is true for a process that
    a read model or an event schema that was added or changed starts anew.
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
    port_setting: str = ""
    also_listens: dict[str, int] = field(default_factory=dict)
    reads_settings: bool = True
    reads_declarations: bool = False
