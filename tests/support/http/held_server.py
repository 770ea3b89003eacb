"""A small server on held sockets, and the holder, for tests of replacements."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from include.settings import CHECKOUT, Settings
from stack.supervision import socket_holder
from stack.supervision.socket_holder import Files
from stack.supervision.supervisor import Supervisor
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

# What goes wrong with a server.
ENDS, NEVER_READY = "ends", "is never ready"
WORKERS = 2
TIMEOUT_S = 30.0
# With other times than the real ones.
HOLD = """
import sys
from stack.supervision import socket_holder
socket_holder.DRAIN_S, socket_holder.TRIAL_S = float(sys.argv.pop()), float(sys.argv.pop())
sys.exit(socket_holder.main(*sys.argv[1:]))
"""


# A server. Its environment says what it does: NAME is its response to each connection, FAULT what goes wrong.
SERVER = """
import os, select, signal, socket, sys, time
from include.process import die_with_parent, launcher_pid
from stack.supervision.socket_holder import DRAIN_PIPE, READY_PIPE, SOCKETS

name, fault = os.environ["NAME"], os.environ["FAULT"]
if fault == "ends":
    sys.exit(3)
die_with_parent(launcher_pid())
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
if fault == "is never ready":
    time.sleep(600)
watched = {int(descriptor): None for descriptor in os.environ[SOCKETS].split(",")}
for number, descriptor in enumerate(watched):
    one = watched[descriptor] = socket.socket(fileno=descriptor)
    one.settimeout(0)
    one.listen()
    os.write(int(os.environ[READY_PIPE]), b"%d\\n" % number)
drain = int(os.environ[DRAIN_PIPE])
watched[drain] = None
while True:
    for descriptor in select.select(list(watched), [], [])[0]:
        if descriptor == drain:
            watched = {}  # accept no more
            break
        try:
            accepted, _ = watched[descriptor].accept()
        except BlockingIOError:
            continue  # the other server has accepted it
        with accepted:
            accepted.sendall(name.encode())
"""


def response(port: int) -> str:
    """Return what a new connection receives."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        return connection.recv(100).decode()


@dataclass
class HeldServer:
    """A holder and its server."""

    files: Files
    port: int
    process: subprocess.Popen[bytes]
    responses: list[str] = field(default_factory=list)

    def request(
        self,
        description: Path,
        request_id: str,
        ready_timeout_s: float = TIMEOUT_S,
        *,
        must_serve: bool = False,
    ) -> None:
        """Request another server."""
        content = {
            "id": request_id,
            "description": str(description),
            "must_serve": must_serve,
            "ready_timeout_s": ready_timeout_s,
            "stop_timeout_s": 5,
        }
        socket_holder.write(self.files.request, content)

    def error(self, request_id: str) -> str:
        """Wait until a request has a result, and return its error."""
        wait_until(
            lambda: socket_holder.read(self.files.result).get("id") == request_id, "it is over", TIMEOUT_S
        )
        return str(socket_holder.read(self.files.result)["error"])

    def servers(self) -> list[psutil.Process]:
        """Return the processes of all servers."""
        return psutil.Process(self.process.pid).children()

    @contextmanager
    def connections(self) -> Iterator[None]:
        """Open one connection after the other during a block."""
        is_over = threading.Event()

        def connect() -> None:
            while not is_over.is_set():
                try:
                    self.responses.append(response(self.port))
                except OSError as error:
                    self.responses.append(repr(error))

        threads = [threading.Thread(target=connect) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            for thread in threads:
                thread.join()


def described(
    folder: Path, name: str, fault: str = "", program: tuple[str, ...] = ("-c", SERVER), **variables: str
) -> Path:
    """Write the description of a server, a program for Python, and return its path."""
    path = folder / f"{name}.description"
    environment = {"NAME": name, "FAULT": fault, "PYTHONPATH": str(CHECKOUT), **variables}
    command = [sys.executable, *program]
    path.write_text(json.dumps({"name": name, "command": command, "environment": environment}))
    return path


@contextmanager
def held_server(
    folder: Path,
    description: Path,
    is_up: Callable[[int], bool] | None = None,
    trial_s: float = 0.5,
    drain_s: float = 0.5,
    port: int | None = None,
    sockets: int = WORKERS,
) -> Iterator[HeldServer]:
    """Run a holder with a server, and wait until that responds: by default, without a request.

    trial_s: how long a new server accepts connections beside the present one before it takes over. drain_s: how long the present one
    then has for the connections that it has accepted. port: None for a free one.
    """
    files = Files(folder / "server")
    files.set_description(str(description))
    port = port or free_ports(1)[0]
    arguments = (str(folder / "server"), "", "127.0.0.1", str(port), str(sockets))
    command = [sys.executable, "-c", HOLD, *arguments, str(trial_s), str(drain_s)]
    with subprocess.Popen(command, cwd=CHECKOUT) as process:
        try:
            held = HeldServer(files, port, process)
            wait_until(lambda: (is_up or responds)(port), "the server responds", TIMEOUT_S)
            yield held
        finally:
            process.kill()


def servers_of(settings: Settings, name: str) -> list[psutil.Process]:
    """Return the processes that a holder of a stack has started, the newest one last: two while one replaces the other."""
    holder = Supervisor(settings).states()[name].pid
    return sorted(psutil.Process(holder).children(), key=lambda server: server.create_time())


def responds(port: int) -> bool:
    """Whether a server responds."""
    try:
        return bool(response(port))
    except OSError:
        return False
