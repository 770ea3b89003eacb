"""Holds the listening sockets of a server, and replaces the server without closing them. supervisord runs it instead of the server.

The program is started without packages, like `exec_process`, so it imports only the standard library. Requests come by file, so none is lost:
`<base>.request` names the description of a new server, which starts beside the present one on the same sockets. When all workers of the new
one are ready, the present one drains, then stops. `<base>.result` says what became of a request, the link `<base>.json` which description the
present server has. SIGUSR1 requests a new server with the same description, which reads changed certificates. A process without sockets
reports that it is ready, then waits for the present one to end. See decision 73.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Variables of a server: its listening sockets, one for each worker, and two pipes. Each worker writes its number and a line feed to the
# first when it is ready. Once the other one is closed, the server accepts no more connections, and closes each after its next response.
SOCKETS = "STACK_SOCKETS"
READY_PIPE = "STACK_READY_PIPE"
DRAIN_PIPE = "STACK_DRAIN_PIPE"
MUST_SERVE = "STACK_MUST_SERVE"  # set if a worker is ready only when it can answer requests of users
LAUNCHER = "FOLDLAKE_LAUNCHER_PID"  # as in include/process.py: the process that the server must not outlive

EXEC_PROCESS = Path(__file__).with_name("exec_process.py")
# For this time both servers accept connections. If the new one ends meanwhile, the present one goes on.
TRIAL_S = 1.0
# In this time, clients that keep connections open have moved to the new server: those that send a request at least as often.
DRAIN_S = 3.0
POLL_S, REPLACING_POLL_S = 0.5, 0.05
SIGUSR1_REQUEST = {"id": "", "must_serve": True, "ready_timeout_s": 120, "stop_timeout_s": 30}


def read(path: Path) -> dict[str, Any]:
    """Return the content of a file; empty if there is none."""
    with suppress(OSError, ValueError):
        return dict(json.loads(path.read_bytes()))
    return {}


def write(path: Path, content: dict[str, Any]) -> None:
    """Replace a file."""
    new = path.with_name(f".{path.name}.new")
    new.write_text(json.dumps(content))
    new.replace(path)


class Files:
    """The files of one held server. base: their path without suffix."""

    def __init__(self, base: str | Path) -> None:
        self.present = Path(f"{base}.json")
        self.request = Path(f"{base}.request")
        self.result = Path(f"{base}.result")

    def description(self) -> str:
        """Return the path of the present server's description; empty if there is none."""
        return str(self.present.readlink()) if self.present.is_symlink() else ""

    def set_description(self, description: str) -> None:
        """Note the description of the present server, with which it is started again after a failure."""
        new = self.present.with_suffix(".new")
        new.unlink(missing_ok=True)
        new.symlink_to(description)
        new.replace(self.present)

    def pending(self) -> dict[str, Any] | None:
        """Return the request without a result, if there is one."""
        request = read(self.request)
        return request if request and request.get("id") != read(self.result).get("id") else None


class Server:
    """A server on the held sockets."""

    def __init__(
        self, sockets: list[socket.socket], description: str, secrets: str, *, must_serve: bool
    ) -> None:
        self.description = description
        self._reports = max(len(sockets), 1)
        self._ready: set[bytes] = set()
        self._received = b""
        self._ready_pipe, ready_write = os.pipe()
        drain_read, self._drain_pipe = os.pipe()
        os.set_blocking(self._ready_pipe, False)
        handed_down = [one.fileno() for one in sockets]
        environment = {
            **os.environ,
            SOCKETS: ",".join(map(str, handed_down)),
            READY_PIPE: str(ready_write),
            DRAIN_PIPE: str(drain_read),
            MUST_SERVE: "1" if must_serve else "",
            LAUNCHER: str(os.getpid()),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(EXEC_PROCESS), description, secrets],
            env=environment,
            pass_fds=(*handed_down, ready_write, drain_read),
        )
        os.close(ready_write)
        os.close(drain_read)

    def is_ready(self) -> bool:
        """Whether every worker has reported that it is ready."""
        with suppress(BlockingIOError):
            while received := os.read(self._ready_pipe, 4096):
                self._received += received
        *lines, self._received = self._received.split(b"\n")
        self._ready.update(lines)
        return len(self._ready) >= self._reports

    def drain(self) -> None:
        """Have it accept no connection, and close each after its next response."""
        if self._drain_pipe >= 0:
            os.close(self._drain_pipe)
            self._drain_pipe = -1

    def end(self) -> None:
        """Kill it if it still runs, and close its pipes."""
        self.process.kill()
        self.process.wait()
        self.drain()
        os.close(self._ready_pipe)


@dataclass
class Replacement:
    """A new server, and how far it has come. `end_s`: when the current phase ends at the latest."""

    server: Server
    request: dict[str, Any]
    phase: str
    end_s: float


STARTING, TRIAL, DRAINING, STOPPING = "starting", "trial", "draining", "stopping"


class SocketHolder:
    """The sockets, the present server, and at times a new one. files: of the server. secrets: as for `exec_process`."""

    def __init__(self, sockets: list[socket.socket], files: Files, secrets: str) -> None:
        self._sockets = sockets
        self._files = files
        self._secrets = secrets
        self._present: Server | None = None
        self._new: Replacement | None = None
        self._is_stopping = self._is_outdated = False

    def run(self) -> int:
        """Keep the server until it ends by itself or this process is stopped; return the exit status."""
        wakeup, waking = socket.socketpair()
        wakeup.settimeout(0)
        waking.settimeout(0)
        signal.set_wakeup_fd(waking.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)
        if (left_over := self._files.pending()) is not None:
            self._report(left_over, "the present server has ended, and is started again")
        self._present = Server(self._sockets, self._files.description(), self._secrets, must_serve=False)
        while not self._is_stopping:
            if self._present is not None and (status := self._present.process.poll()) is not None:
                self._present.end()
                self._present = None
                if self._new is None:
                    return status if status >= 0 else 1
            self._take_request()
            if self._new is not None:
                self._advance(self._new)
            if self._present is None and self._new is None:
                return 1
            select.select([wakeup], [], [], POLL_S if self._new is None else REPLACING_POLL_S)
            with suppress(BlockingIOError):
                wakeup.recv(4096)
        return self._end_servers()

    def _note(self, number: int, _: object) -> None:
        self._is_outdated |= number == signal.SIGUSR1
        self._is_stopping |= number in {signal.SIGTERM, signal.SIGINT}

    def _end_servers(self) -> int:
        """End all servers. One that is still starting serves nobody. supervisord kills those that take too long."""
        if self._new is not None and self._new.phase == STARTING:
            self._new.server.end()
        servers = (self._present, None if self._new is None else self._new.server)
        processes = [server.process for server in servers if server is not None]
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        return 0

    def _take_request(self) -> None:
        """Start the server that is requested, unless it is already being started. A request that comes too late waits for its turn."""
        new = self._new
        request = self._files.pending()
        if request is None and self._is_outdated and self._present is not None:
            request = {**SIGUSR1_REQUEST, "description": self._present.description}
        if request is None or (new is not None and (new.phase != STARTING or new.request == request)):
            return
        description = request["description"]
        if new is not None:
            if new.server.description == description:
                new.request = request  # another `up` has requested the same
                return
            new.server.end()
            self._new = None
        if self._present is not None and self._present.description == description and request["id"]:
            self._commit(description)
            self._report(request)
            return
        self._is_outdated = False
        try:
            server = Server(self._sockets, description, self._secrets, must_serve=request["must_serve"])
        except OSError as error:
            self._report(request, f"it cannot be started: {error}")
            return
        self._new = Replacement(server, request, STARTING, time.monotonic() + request["ready_timeout_s"])

    def _advance(self, new: Replacement) -> None:
        is_over = time.monotonic() >= new.end_s
        if (status := new.server.process.poll()) is not None:
            self._give_up(new, f"it ended with status {status}")
        elif new.phase == STARTING and new.server.is_ready():
            new.phase, new.end_s = TRIAL, time.monotonic() + TRIAL_S
        elif new.phase == STARTING and is_over:
            self._give_up(new, f"it was not ready after {new.request['ready_timeout_s']} s")
        elif new.phase == TRIAL and (is_over or self._present is None):
            self._commit(new.server.description)
            if self._present is not None:
                self._present.drain()
            new.phase, new.end_s = DRAINING, time.monotonic() + (DRAIN_S if self._sockets else 0)
        elif new.phase == DRAINING and (is_over or self._present is None):
            if self._present is not None:
                self._present.process.terminate()
            new.phase, new.end_s = STOPPING, time.monotonic() + new.request["stop_timeout_s"]
        elif new.phase == STOPPING and self._present is None:
            self._present, self._new = new.server, None
            self._report(new.request)
        elif new.phase == STOPPING and is_over and self._present is not None:
            self._present.process.kill()

    def _give_up(self, new: Replacement, reason: str) -> None:
        """End the new server. The present one goes on, unless it no longer accepts: then this process ends, and is started again."""
        new.server.end()
        self._new = None
        if new.phase in {DRAINING, STOPPING} and self._present is not None:
            self._commit(self._present.description)
            if self._sockets:
                self._present.process.kill()
        self._report(new.request, reason)

    def _commit(self, description: str) -> None:
        try:
            self._files.set_description(description)
        except OSError as error:
            _log(f"cannot note the description of the server, so the next `up` replaces it again: {error}")

    def _report(self, request: dict[str, Any], error: str = "") -> None:
        _log(f"the new server is not used: {error}" if error else "the server is replaced")
        try:
            if request["id"]:
                write(self._files.result, {"id": request["id"], "error": error})
        except OSError as problem:
            _log(f"cannot report this: {problem}")


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # flushed: standard error is buffered by line


def bound_sockets(address: str, port: int, count: int) -> list[socket.socket]:
    """Return sockets that are bound to one port. Each worker listens on one of them: until then, connections are refused."""
    family, kind, protocol, _, bound = socket.getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    found = []
    for _ in range(count):
        one = socket.socket(family, kind, protocol)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The kernel distributes connections among the sockets.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind(bound)
        found.append(one)
    return found


def main(base: str, secrets: str, address: str, port: str, count: str) -> int:
    """Hold `count` sockets at an address; return the exit status."""
    return SocketHolder(bound_sockets(address, int(port), int(count)), Files(base), secrets).run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
