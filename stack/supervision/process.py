"""The definition of one process of the embedded stack, and the ports of all of them: which are free, and who uses the others."""

import random
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import psutil

from include.errors import FoldlakeError


@dataclass(frozen=True)
class Held:
    """How `socket_holder` starts a process, so that a new one can get ready beside the present one.

    address: that its listening sockets are bound to, each with the process's port. sockets: one for each worker of a server; 0 for another
        process.
    before: called with the new description before the new process is started.
    takeover_s: how long the present process may take to pass its work to the new one, beyond the time of a stop.
    """

    address: str = ""
    sockets: int = 0
    before: Callable[[Path], None] = lambda _: None
    takeover_s: int = 0


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
    unit: changed processes of one start order and unit are replaced together, those of the next unit when they are ready. Empty: all
        others of the order.
    is_serving: whether requests of users are answered, if there are any. If they were before a replacement, it is finished when
        they are again.
    reads_settings: False for a third-party server, whose environment contains no Foldlake settings, so that a changed
        setting does not restart it.
    settings_file: with the settings that the process reads again and again, so that only a changed secret restarts it.
    reads_job_settings: False for a process that needs none of the settings that only jobs read.
    reads_declarations: True for a process that is restarted when a read model or an event schema is added or changed.
    code: folders and files of the checkout with the code that it runs, so that changed code restarts it. Empty for a third-party server.
    held: for a process that is replaced by one that gets ready beside it. None: it is stopped first.
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
    unit: str = ""
    is_serving: Callable[[], bool] | None = None
    reads_settings: bool = True
    settings_file: Path | None = None
    reads_job_settings: bool = True
    reads_declarations: bool = False
    code: tuple[str, ...] = ()
    held: Held | None = None


# Below the ports that Linux assigns to outgoing connections (32768 and up), which may be taken at any time.
UNASSIGNED_PORTS = range(23000, 32000)


class PortTakenError(FoldlakeError):
    """A port that a process of the stack needs is in use."""


def check_ports(processes: Iterable[Process]) -> None:
    """Check that the ports of these processes are free; none of them is running.

    Raises:
        PortTakenError: names every port in use, the process that uses it, and the setting that changes it.
    """
    holders = listeners()
    problems = []
    for process in processes:
        for setting, port in ports_of(process).items():
            if port in holders:
                remedy = f"set {setting} to a free port" if setting else "change its port"
                problems.append(
                    f"Port {port}, needed by {process.name}, is in use by {holders[port]}: stop that process, or {remedy}."
                )
    if problems:
        raise PortTakenError("\n".join(problems))


def free_ports(count: int, candidates: Sequence[int] = UNASSIGNED_PORTS) -> list[int]:
    """Return this number of ports, chosen at random from the candidates, on which no process of this machine listens now.

    Raises PortTakenError when too few of them are free.
    """
    free = (port for port in random.sample(candidates, len(candidates)) if _is_free(port))
    ports = list(islice(free, count))
    if len(ports) < count:
        message = f"{len(ports)} of {len(candidates)} ports are free; {count} are needed."
        raise PortTakenError(message)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def ports_of(process: Process) -> dict[str, int]:
    """Return settings variable -> port for the ports of a process."""
    own = {} if process.port is None else {process.port_setting: process.port}
    return {**own, **process.also_listens}


def listeners() -> dict[int, str]:
    """Return port -> description of the process of this machine that listens on it."""
    return {
        connection.laddr.port: _describe(connection.pid)
        for connection in psutil.net_connections(kind="tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr
    }


def _describe(pid: int | None) -> str:
    if pid is None:
        return "a process of another user"
    try:
        return f"pid {pid} ({psutil.Process(pid).name()})"
    except psutil.Error:
        return f"pid {pid}"
