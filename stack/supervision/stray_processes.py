"""Finds and ends processes that a stack started, whoever their parent is by now."""

import os
from pathlib import Path

import psutil

# Set in the supervisor's environment alone, so that all it starts inherits it. FOLDLAKE_HOME would not do: a user may
# have exported that, and then their shell carries it too.
MARKER = "FOLDLAKE_STACK"
TERMINATE_TIMEOUT_S = 10.0
KILL_TIMEOUT_S = 5.0


def find_leftovers(home: Path) -> list[psutil.Process]:
    """List the processes that carry the marker of this home, without the caller and its parents."""
    own = {os.getpid(), *_ancestors()}
    return [
        process for process in psutil.process_iter() if process.pid not in own and _belongs(process, home)
    ]


def _ancestors() -> set[int]:
    """Return the ids of the caller's parents, up to the first that ends while they are looked at."""
    pids: set[int] = set()
    process: psutil.Process | None = psutil.Process()
    while process is not None:
        pids.add(process.pid)
        try:
            process = process.parent()
        except psutil.NoSuchProcess:
            break
    return pids


def end_leftovers(home: Path) -> int:
    """Terminate, then kill, everything of this home that still runs; returns how many there were."""
    ended: set[int] = set()
    # Twice: what is being ended may just have started something.
    for _ in range(2):
        processes = find_leftovers(home)
        if not processes:
            break
        ended |= {process.pid for process in processes}
        end_processes(processes)
    return len(ended)


def end_processes(processes: list[psutil.Process]) -> None:
    """Ask each to terminate, and kill those that did not in time."""
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
