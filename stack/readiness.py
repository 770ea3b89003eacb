"""Waits until started processes are ready, or one of them has failed to start; the steps of a start or stop, and the client of probes."""

import math
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx

from include.errors import FoldlakeError
from include.waiting import wait_for
from stack.supervision.configuration import log_path
from stack.supervision.process import Process
from stack.supervision.supervisor import ProcessState, Supervisor


@dataclass(frozen=True)
class Progress:
    """One step of a component or a process: `state` is preparing, prepared, getting ready, starting, ready, stopping or stopped.

    `elapsed_s` is the time since the previous step.
    """

    name: str
    state: str
    elapsed_s: float


Listener = Callable[[Progress], None]


# A readiness probe must return within 2 s (`Process.is_ready`).
PROBE_TIMEOUT_S = 1.5
POLL_INTERVAL_S = 0.2
LOG_TAIL_LINES = 30
# A process that ends this often during its start is considered failed.
MAX_STARTS = 4


class StartError(FoldlakeError):
    """A process did not become ready; the message ends with the last lines of its log."""


class _Start:
    """Observes the start of one process until it is ready."""

    def __init__(self, home: Path, process: Process) -> None:
        self.process = process
        self._log = log_path(home, process.name)
        self._began_s = time.monotonic()
        self._pids: set[int] = set()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_s

    def is_ready(self, state: ProcessState | None) -> bool:
        """Whether the process is ready; raises StartError when it has ended too often or the timeout has expired."""
        if state is not None and state.pid is not None:
            self._pids.add(state.pid)
            if self.process.is_ready():
                return True
        if len(self._pids) >= MAX_STARTS:
            raise self._failure(f"ended {len(self._pids)} times")
        if self.elapsed_s > self.process.ready_timeout_s:
            raise self._failure(f"was not ready after {self.elapsed_s:.0f} s")
        return False

    def _failure(self, reason: str) -> StartError:
        return StartError(f"{self.process.name} {reason}. The end of {self._log}:\n{log_tail(self._log)}")


def wait_until_ready(
    home: Path, supervisor: Supervisor, processes: list[Process], listener: Listener
) -> None:
    """Wait until all of these newly started processes are ready.

    Raises:
        StartError: a process ended too often, or was not ready in time.
    """
    waiting = [_Start(home, process) for process in processes]
    for start in waiting:
        listener(Progress(start.process.name, "starting", 0))

    def are_ready() -> bool:
        states = supervisor.states()
        for start in list(waiting):
            if start.is_ready(states.get(start.process.name)):
                listener(Progress(start.process.name, "ready", start.elapsed_s))
                waiting.remove(start)
        return not waiting

    # Each process has its own timeout.
    wait_for(are_ready, timeout_s=math.inf, poll_s=POLL_INTERVAL_S)


def log_tail(path: Path, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines of a log."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"


@cache
def loopback_client() -> httpx.Client:
    """Return this process's client for servers on this machine.

    It bypasses the user's proxy, and opens a connection for each request: a connection that stays open would delay the
    stop of its server.
    """
    return httpx.Client(
        timeout=PROBE_TIMEOUT_S, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
    )


def tls_client(context: ssl.SSLContext) -> httpx.Client:
    """Return a client for one request by TLS to a server on this machine."""
    return httpx.Client(timeout=PROBE_TIMEOUT_S, trust_env=False, verify=context)
