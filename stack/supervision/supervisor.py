"""The supervisor of the embedded stack: supervisord, its configuration, and talking to it."""

import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from supervisor.xmlrpc import SupervisorTransport

from include.errors import FoldlakeError
from include.settings import CHECKOUT, Settings
from stack.provisioning.layout import write_whole
from stack.settings_environment import settings_environment
from stack.supervision import exec_process
from stack.supervision.model_digest import declarations_digest
from stack.supervision.process import Process
from stack.supervision.stray_processes import MARKER
from stack.tools import Tools

# A Unix socket's path may have 107 bytes; supervisord binds one that is longer by its pid.
LONGEST_SOCKET_PATH = 90
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 20.0
POLL_INTERVAL_S = 0.1
LOG_BYTES = 20 * 1024 * 1024
LOG_BACKUPS = 3
# What supervisord calls `wait`: it would answer only once the process has been up for a second, or is gone.
WITHOUT_WAITING = False


class SupervisorError(FoldlakeError):
    """Supervisord could not be started or does not answer."""


class SupervisorGoneError(SupervisorError):
    """There is no supervisord, or it does not answer."""


@dataclass(frozen=True)
class ProcessState:
    """What supervisord knows about one process."""

    name: str
    state: str
    pid: int | None
    started_at: datetime | None

    @property
    def is_running(self) -> bool:
        """Whether there is a process right now."""
        return self.pid is not None


class Supervisor:
    """The supervisord of one home; there may be none running."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._run = settings.home / "run"
        self._socket = socket_path(settings.home)
        self.log = settings.home / "logs" / "supervisord.log"

    def pid(self) -> int | None:
        """Return supervisord's process id, or nothing when none answers."""
        try:
            return int(self._call("getPID"))
        except SupervisorGoneError:
            return None

    def ensure_running(
        self, processes: Iterable[Process], before_stop: Callable[[list[str]], None] = lambda _: None
    ) -> None:
        """Start supervisord, or let the one that runs take over a changed configuration.

        `before_stop` is told the names of the processes that are about to be stopped because their definition changed.

        Raises:
            SupervisorError: it does not come up.
        """
        self._write_configuration(processes)
        if self.pid() is None:
            self._start()
        else:
            self._update(before_stop)

    def states(self) -> dict[str, ProcessState]:
        """Return the state of every process, by name; empty when supervisord is not running."""
        try:
            answers = self._call("getAllProcessInfo")
        except SupervisorGoneError:
            return {}
        return {answer["name"]: _process_state(answer) for answer in answers}

    def start(self, name: str) -> None:
        """Start one process, without waiting for it; nothing where it runs already."""
        try:
            self._call("startProcess", name, WITHOUT_WAITING)
        except xmlrpc.client.Fault as fault:
            if "ALREADY_STARTED" not in fault.faultString:
                message = f"{name} could not be started: {fault.faultString}"
                raise SupervisorError(message) from fault

    def stop(self, processes: Iterable[Process]) -> None:
        """Stop these processes, all at once, and wait until they are gone."""
        processes = list(processes)
        for process in processes:
            try:
                self._call("stopProcess", process.name, WITHOUT_WAITING)
            except (SupervisorGoneError, xmlrpc.client.Fault):
                # Not running, or being shut down by somebody else.
                continue
        names = {process.name for process in processes}
        deadline = time.monotonic() + max((p.stop_timeout_s for p in processes), default=0) + STOP_TIMEOUT_S
        while time.monotonic() < deadline:
            if not any(state.is_running for state in self.states().values() if state.name in names):
                return
            time.sleep(POLL_INTERVAL_S)

    def shut_down(self) -> None:
        """Stop supervisord and all that it still runs, and wait until it is gone."""
        try:
            supervisord = psutil.Process(self._call("getPID"))
            self._call("shutdown")
            supervisord.wait(STOP_TIMEOUT_S)
        except (SupervisorGoneError, psutil.Error):
            return

    def restarts(self, name: str) -> int:
        """Count how often the process ended without being told to, since supervisord started."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0
        return len(re.findall(rf" exited: {re.escape(name)} \(", text))

    def log_path(self, name: str) -> Path:
        """File that the process writes to."""
        return self._settings.home / "logs" / f"{name}.log"

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - XML-RPC's answers are dynamic
        """Call one of supervisord's methods.

        Raises:
            SupervisorGoneError: there is none, or it does not answer.
            xmlrpc.client.Fault: it refuses.
        """
        # The URL is not used: the transport goes through the socket.
        transport = SupervisorTransport(serverurl=f"unix://{self._socket}")
        with closing(transport):
            try:
                proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
                return getattr(proxy.supervisor, method)(*arguments)
            except (OSError, http.client.HTTPException, xmlrpc.client.ProtocolError) as error:
                raise SupervisorGoneError(
                    f"supervisord does not answer on {self._socket}: {error}"
                ) from error

    def _write_configuration(self, processes: Iterable[Process]) -> None:
        self._run.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        sections = [self._main_section(), *(self._program_section(process) for process in processes)]
        write_whole(self._run / "supervisord.conf", "\n".join(sections))

    def _main_section(self) -> str:
        user = "user=root" if os.getuid() == 0 else ""
        return f"""\
[supervisord]
{user}
logfile={_escaped(self.log)}
logfile_maxbytes=50MB
logfile_backups=1
pidfile={_escaped(self._run / "supervisord.pid")}
childlogdir={_escaped(self._run)}

[unix_http_server]
file={_escaped(self._socket)}
chmod=0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
"""

    def _program_section(self, process: Process) -> str:
        described: dict[str, object] = {
            "command": process.command,
            "environment": {**self._common_environment(process), **process.environment},
        }
        if process.reads_declarations:
            described["declarations"] = declarations_digest(self._settings)
        description = json.dumps(described, indent=1)
        # Named by its content: supervisord sees a changed process by its changed command.
        digest = hashlib.sha256(description.encode()).hexdigest()[:12]
        path = self._run / "processes" / f"{process.name}-{digest}.json"
        if not path.exists():
            for outdated in path.parent.glob(f"{process.name}-{'?' * 12}.json"):
                outdated.unlink()
            write_whole(path, description)
        python = Tools(self._settings).main_python
        group = "true" if process.kill_as_group else "false"
        return f"""\
[program:{process.name}]
command="{_escaped(python)}" -I -S "{_escaped(exec_process.__file__)}" "{_escaped(path)}"
directory={_escaped(CHECKOUT)}
autostart=false
autorestart=true
startsecs=1
startretries=1000
stopsignal={process.stop_signal}
stopwaitsecs={process.stop_timeout_s}
killasgroup={group}
redirect_stderr=true
stdout_logfile={_escaped(_escaped(self.log_path(process.name)))}
stdout_logfile_maxbytes={LOG_BYTES}
stdout_logfile_backups={LOG_BACKUPS}
"""

    def _common_environment(self, process: Process) -> dict[str, str]:
        java = {"JAVA_HOME": str(Tools(self._settings).java_home)}
        if not process.reads_settings:
            return java
        return {
            **java,
            **settings_environment(self._settings),
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
        }

    def _start(self) -> None:
        self._socket.unlink(missing_ok=True)
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".log.previous"))
        # Supervisord detaches itself, into a session of its own: a Ctrl-C meant for `up` does not reach the servers.
        done = subprocess.run(
            [sys.executable, "-m", "supervisor.supervisord", "-c", str(self._run / "supervisord.conf")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
            cwd=CHECKOUT,
            env={
                **os.environ,
                MARKER: marker(self._settings.home),
                # Without it, setproctitle (Airflow, granian) writes over the environment that carries the marker.
                "SPT_NOENV": "1",
            },
        )
        deadline = time.monotonic() + START_TIMEOUT_S
        while done.returncode == 0 and time.monotonic() < deadline:
            if self.pid() is not None:
                return
            time.sleep(POLL_INTERVAL_S)
        message = f"supervisord did not start; it said:\n{(done.stdout + done.stderr)[-2000:]}\nIts log is {self.log}."
        raise SupervisorError(message)

    def _update(self, before_stop: Callable[[list[str]], None]) -> None:
        ((added, changed, removed),) = self._call("reloadConfig")
        if changed or removed:
            before_stop([*changed, *removed])
        for name in [*changed, *removed]:
            self._call("stopProcessGroup", name)
            self._call("removeProcessGroup", name)
        for name in [*added, *changed]:
            self._call("addProcessGroup", name)


def socket_path(home: Path) -> Path:
    """Return the path of supervisord's socket: in the home, or under the temporary directory where that is too long."""
    inside = home / "run" / "supervisor.sock"
    if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH:
        return inside
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"foldlake-{os.getuid()}-{digest}.sock"


def marker(home: Path) -> str:
    """Return what the processes of this home carry in their environment."""
    return str(home.resolve())


def remove_run_files(settings: Settings) -> None:
    """Remove what only a running stack needs."""
    socket_path(settings.home).unlink(missing_ok=True)
    shutil.rmtree(settings.home / "run" / "processes", ignore_errors=True)


def _process_state(answer: dict[str, Any]) -> ProcessState:
    pid = answer["pid"] or None
    return ProcessState(
        name=answer["name"],
        state=answer["statename"].lower(),
        pid=pid,
        started_at=datetime.fromtimestamp(answer["start"], UTC) if pid else None,
    )


def _escaped(path: Path | str) -> str:
    """Protect the percent signs of a path: supervisord expands them, those of a program's log file twice."""
    return str(path).replace("%", "%%")
