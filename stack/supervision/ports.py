"""Which process holds a port, said so that the reader knows what to do."""

from collections.abc import Iterable

import psutil

from include.errors import FoldlakeError
from stack.supervision.process import Process


class PortTakenError(FoldlakeError):
    """A port that a process of the stack needs is in use."""


def check_ports(processes: Iterable[Process]) -> None:
    """Check that nobody listens where these processes, none of which runs, will.

    Raises:
        PortTakenError: names every port that is taken, who holds it, and the setting that moves it.
    """
    holders = _listeners()
    problems = []
    for process in processes:
        for setting, port in ports_of(process).items():
            if port in holders:
                remedy = f"set {setting} to a free port" if setting else "change its port"
                problems.append(
                    f"Port {port}, for {process.name}, is taken by {holders[port]}: stop that, or {remedy}."
                )
    if problems:
        raise PortTakenError("\n".join(problems))


def ports_of(process: Process) -> dict[str, int]:
    """Return every port of a process by the setting that moves it."""
    own = {} if process.port is None else {process.port_setting: process.port}
    return {**own, **process.also_listens}


def _listeners() -> dict[int, str]:
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
