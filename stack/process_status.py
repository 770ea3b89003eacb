"""The status of each process of the stack, for `./foldlake status`."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil

from include.settings import Settings
from stack.lifecycle import all_processes
from stack.supervision.process import Process
from stack.supervision.supervisor import ProcessState, Supervisor

BYTES_PER_MB = 1024 * 1024


@dataclass(frozen=True)
class ProcessStatus:
    """The current status of one process.

    state: `ready`, `not ready` for a running process that does not answer yet, or supervisord's state of a process that
        is not running.
    memory_mb: resident memory of the process and all its descendants.
    restarts: how often the process ended unexpectedly since the stack was started.
    """

    name: str
    state: str
    pid: int | None
    port: int | None
    memory_mb: int | None
    uptime_s: int | None
    restarts: int


def process_statuses(settings: Settings) -> list[ProcessStatus]:
    """Return the status of every process of the stack, in start order."""
    supervisor = Supervisor(settings)
    states = supervisor.states()
    processes = all_processes(settings)
    with ThreadPoolExecutor(max(1, len(processes))) as pool:
        return list(
            pool.map(lambda process: _status(supervisor, process, states.get(process.name)), processes)
        )


def _status(supervisor: Supervisor, process: Process, state: ProcessState | None) -> ProcessStatus:
    if state is None or state.pid is None:
        name = "stopped" if state is None else state.state
        restarts = 0 if state is None else supervisor.restarts(process.name)
        return ProcessStatus(process.name, name, None, process.port, None, None, restarts)
    uptime_s = (datetime.now(UTC) - state.started_at).total_seconds() if state.started_at else 0
    return ProcessStatus(
        name=process.name,
        state="ready" if process.is_ready() else "not ready",
        pid=state.pid,
        port=process.port,
        memory_mb=resident_mb(state.pid),
        uptime_s=round(uptime_s),
        restarts=supervisor.restarts(process.name),
    )


def resident_mb(pid: int) -> int | None:
    """Return the resident memory of a process and all its descendants, or None when it has ended."""
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return None
    total = 0
    for process in tree:
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return round(total / BYTES_PER_MB)
