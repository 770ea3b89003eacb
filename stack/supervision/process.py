"""The definition of one process of the embedded stack."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Process:
    """One supervised process.

    command: an argument vector with absolute paths.
    start_order: processes start in ascending order. Those with the same number start together; the next ones start when
        all of these are ready.
    is_ready: whether the process is ready. It is called repeatedly, must not raise, and must return within 2 s.
    environment: added to the supervisor's own.
    port_setting: the variable that changes `port`, named in the message about a port in use.
    also_listens: variable -> port, for further ports.
    reads_settings: False for a third-party server, whose environment contains no Foldlake settings, so that a changed
        setting does not restart it.
    reads_declarations: True for a process that is restarted when a read model or an event schema is added or changed.
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
