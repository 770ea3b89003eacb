"""Finds and ends the processes that a stack has started, even if they now have another parent."""

import os
from pathlib import Path

import psutil

# Set only in the supervisor's environment, and inherited by every process that it starts. FOLDLAKE_HOME cannot serve
# as the marker, because users may export it in a shell.
MARKER = "FOLDLAKE_STACK"
TERMINATE_TIMEOUT_S = 10.0
KILL_TIMEOUT_S = 5.0


def find_stray_processes(home: Path) -> list[psutil.Process]:
    """List the processes with this home's marker in their environment, except the caller and its ancestors."""
    own = {os.getpid(), *_ancestors()}
    return [
        process for process in psutil.process_iter() if process.pid not in own and _belongs(process, home)
    ]


def _ancestors() -> set[int]:
    """Return the ids of the caller's ancestors, up to the first that has ended."""
    pids: set[int] = set()
    process: psutil.Process | None = psutil.Process()
    while process is not None:
        pids.add(process.pid)
        try:
            process = process.parent()
        except psutil.NoSuchProcess:
            break
    return pids


def end_stray_processes(home: Path) -> int:
    """Terminate, then kill, all processes of this home; returns their number."""
    ended: set[int] = set()
    # Twice: a process may have started another one while it was being ended.
    for _ in range(2):
        processes = find_stray_processes(home)
        if not processes:
            break
        ended |= {process.pid for process in processes}
        end_processes(processes)
    return len(ended)


def end_processes(processes: list[psutil.Process]) -> None:
    """Send SIGTERM to each process, and SIGKILL to those that have not ended in time."""
    for process in processes:
        _signal(process, "terminate")
    _, alive = psutil.wait_procs(processes, timeout=TERMINATE_TIMEOUT_S)
    for process in alive:
        _signal(process, "kill")
    psutil.wait_procs(alive, timeout=KILL_TIMEOUT_S)


def _signal(process: psutil.Process, method: str) -> None:
    try:
        getattr(process, method)()
    except psutil.NoSuchProcess:
        pass


def _belongs(process: psutil.Process, home: Path) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARKER) == str(
            home.resolve()
        )
    except (psutil.Error, OSError):
        return False
