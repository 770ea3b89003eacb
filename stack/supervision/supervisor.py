"""The embedded stack's supervisor: starts supervisord, and calls its XML-RPC interface.

supervisord needs neither Docker nor systemd, restarts with growing intervals, and rotates logs.
"""

import http.client
import os
import re
import shutil
import subprocess
import sys
import xmlrpc.client
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from supervisor.xmlrpc import SupervisorTransport

from include.errors import FoldlakeError
from include.settings import CHECKOUT, Settings
from include.settings.kafka import kafka_secrets_path
from include.stream import driver_configuration
from include.waiting import wait_for
from stack.supervision.configuration import (
    configuration_path,
    descriptions_dir,
    held_files,
    log_path,
    secrets_path,
    socket_path,
    write_configuration,
)
from stack.supervision.process import Process
from stack.supervision.stray_processes import MARKER

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 20.0
POLL_INTERVAL_S = 0.1
# supervisord's argument `wait`: if true, the call returns only after the process has run for a second, or has ended.
WITHOUT_WAITING = False


class SupervisorError(FoldlakeError):
    """supervisord did not start, or rejected a call."""


class SupervisorGoneError(SupervisorError):
    """supervisord is not running, or does not answer."""


@dataclass(frozen=True)
class ProcessState:
    """The state of one process, as reported by supervisord."""

    name: str
    state: str
    pid: int | None
    started_at: datetime | None

    @property
    def is_running(self) -> bool:
        """Whether the process currently exists."""
        return self.pid is not None


@dataclass(frozen=True)
class Changes:
    """The names of processes whose definition has changed, and of those that are no longer defined.

    outdated: name -> new description, of servers that can be replaced without closing their listening sockets.
    """

    changed: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    outdated: Mapping[str, Path] = field(default_factory=dict)


class Supervisor:
    """The supervisord of one home, running or not."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._socket = socket_path(settings.home)
        self._log = log_path(settings.home, "supervisord")
        self._descriptions: dict[str, Path] = {}

    def pid(self) -> int | None:
        """Return supervisord's process id, or None when it is not running."""
        try:
            return int(self._call("getPID"))
        except SupervisorGoneError:
            return None

    def ensure_running(self, processes: Iterable[Process]) -> Changes:
        """Start supervisord, or have the running one read a changed configuration, and return what has changed.

        New processes are defined, and not started. Those that are no longer defined, or whose definition has changed, still run: `remove` and
        `replace` change that.

        Raises:
            SupervisorError: supervisord does not start.
        """
        processes = list(processes)
        is_new = self.pid() is None
        if is_new:
            shutil.rmtree(descriptions_dir(self._settings.home), ignore_errors=True)
        self._descriptions = write_configuration(self._settings, processes)
        running = {name for name, state in self.states().items() if state.is_running}
        outdated = {}
        for process in processes:
            if process.held is None:
                continue
            wanted, held = self._descriptions[process.name], held_files(self._settings.home, process.name)
            if process.name not in running:
                held.set_description(str(wanted))
            elif held.description() != str(wanted) or held.pending() is not None:
                outdated[process.name] = wanted
        if is_new:
            self._start()
            return Changes()
        ((added, changed, removed),) = self._call("reloadConfig")
        for name in added:
            self._call("addProcessGroup", name)
        # Another port, for example, needs other sockets.
        kept = {name: path for name, path in outdated.items() if name not in changed}
        return Changes(frozenset(changed), frozenset(removed), kept)

    def replace(self, processes: Iterable[Process]) -> None:
        """Stop these processes in parallel, and define them as the configuration does; they are not started."""
        processes = list(processes)
        self.stop(processes)
        for process in processes:
            if process.held is not None:
                held = held_files(self._settings.home, process.name)
                held.set_description(str(self._descriptions[process.name]))
            self._call("removeProcessGroup", process.name)
            self._call("addProcessGroup", process.name)

    def remove(self, name: str) -> None:
        """Stop a process that is no longer defined, and forget it."""
        self._call("stopProcessGroup", name)
        self._call("removeProcessGroup", name)

    def states(self) -> dict[str, ProcessState]:
        """Return the state of every process, by name; empty when supervisord is not running."""
        try:
            answers = self._call("getAllProcessInfo")
        except SupervisorGoneError:
            return {}
        return {answer["name"]: _process_state(answer) for answer in answers}

    def start(self, name: str) -> None:
        """Start one process without waiting for it; does nothing when it is running."""
        try:
            self._call("startProcess", name, WITHOUT_WAITING)
        except xmlrpc.client.Fault as fault:
            if "ALREADY_STARTED" not in fault.faultString:
                message = f"supervisord cannot start {name}: {fault.faultString}"
                raise SupervisorError(message) from fault

    def stop(self, processes: Iterable[Process]) -> None:
        """Stop these processes in parallel, and wait until they have ended."""
        processes = list(processes)
        for process in processes:
            try:
                self._call("stopProcess", process.name, WITHOUT_WAITING)
            except (SupervisorGoneError, xmlrpc.client.Fault):
                # Not running, or already being stopped.
                continue
        names = {process.name for process in processes}
        wait_for(
            lambda: not any(state.is_running for state in self.states().values() if state.name in names),
            timeout_s=max((process.stop_timeout_s for process in processes), default=0) + STOP_TIMEOUT_S,
            poll_s=POLL_INTERVAL_S,
        )

    def shut_down(self) -> None:
        """Stop supervisord and all processes that it still runs, and wait until it has ended."""
        try:
            supervisord = psutil.Process(self._call("getPID"))
            self._call("shutdown")
            supervisord.wait(STOP_TIMEOUT_S)
        except (SupervisorGoneError, psutil.Error):
            return

    def restarts(self, name: str) -> int:
        """Return how often the process ended unexpectedly since supervisord started."""
        try:
            text = self._log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0
        return len(re.findall(rf" exited: {re.escape(name)} \(", text))

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - XML-RPC results are dynamic
        """Call one of supervisord's methods.

        Raises:
            SupervisorGoneError: supervisord is not running, or does not answer.
            xmlrpc.client.Fault: supervisord rejects the call.
        """
        # The URL is unused: the transport connects to the socket.
        transport = SupervisorTransport(serverurl=f"unix://{self._socket}")
        with closing(transport):
            try:
                proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
                return getattr(proxy.supervisor, method)(*arguments)
            except (OSError, http.client.HTTPException, xmlrpc.client.ProtocolError) as error:
                raise SupervisorGoneError(
                    f"supervisord does not answer on {self._socket}: {error}"
                ) from error

    def _start(self) -> None:
        self._socket.unlink(missing_ok=True)
        if self._log.exists():
            self._log.replace(self._log.with_suffix(".log.previous"))
        configuration = str(configuration_path(self._settings.home))
        # supervisord detaches into its own session: Ctrl-C in the terminal of `up` does not reach the servers.
        done = subprocess.run(
            [sys.executable, "-m", "supervisor.supervisord", "-c", configuration],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
            cwd=CHECKOUT,
            env={
                **os.environ,
                MARKER: marker(self._settings.home),
                # Otherwise setproctitle (Airflow, granian) overwrites the environment that contains the marker.
                "SPT_NOENV": "1",
            },
        )
        if done.returncode != 0 or not self._answers_in_time():
            output = (done.stdout + done.stderr)[-2000:]
            message = f"supervisord did not start. Its output:\n{output}\nIts log is {self._log}."
            raise SupervisorError(message)

    def _answers_in_time(self) -> bool:
        return bool(wait_for(self.pid, timeout_s=START_TIMEOUT_S, poll_s=POLL_INTERVAL_S))


def marker(home: Path) -> str:
    """Return the value of the environment variable that identifies this home's processes."""
    return str(home.resolve())


def remove_run_files(home: Path) -> None:
    """Remove the files that are needed only while the stack is running."""
    socket_path(home).unlink(missing_ok=True)
    shutil.rmtree(descriptions_dir(home), ignore_errors=True)
    secrets_path(home).unlink(missing_ok=True)
    kafka_secrets_path(home).unlink(missing_ok=True)
    driver_configuration.remove(home)


def _process_state(answer: dict[str, Any]) -> ProcessState:
    pid = answer["pid"] or None
    return ProcessState(
        name=answer["name"],
        state=answer["statename"].lower(),
        pid=pid,
        started_at=datetime.fromtimestamp(answer["start"], UTC) if pid else None,
    )
