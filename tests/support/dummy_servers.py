"""Servers that only listen, instead of Kafka and the schema registry, for tests of the supervisor.

The module also runs as a program, which is the command line with these servers: `python -m tests.support.dummy_servers up`.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from cli.__main__ import main
from include.settings import CHECKOUT, Settings, settings_environment
from stack import lifecycle
from stack.process_status import process_statuses
from stack.supervision.process import Held, Process
from stack.supervision.supervisor import Supervisor
from stack.tools import Tools
from tests.support.http import held_server

LISTEN = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    server.accept()[0].close()
"""
CONNECT_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class DummyServer:
    """A component of the stack with one process, which listens on a port and does nothing else.

    name: of the component and its process. port: returns its port from the settings. heap_mb: returns the only setting on
    which its command depends.
    """

    name: str
    port: Callable[[Settings], int]
    heap_mb: Callable[[Settings], int]

    def prepare(self, _settings: Settings) -> None:
        """Do nothing: the server has no files."""

    def processes(self, settings: Settings) -> list[Process]:
        """Return the server's process; it is not ready while the home contains the file that `hold_back` creates."""
        port = self.port(settings)
        python = str(Tools(settings.tools).main_python)
        return [
            Process(
                name=self.name,
                command=(python, "-I", "-S", "-c", LISTEN, str(port), f"-Xmx{self.heap_mb(settings)}m"),
                start_order=10,
                is_ready=lambda: not _hold_file(settings).exists() and listens(port),
                port=port,
                port_setting=f"FOLDLAKE_{self.name.upper()}_PORT",
                unit=self.name,
                reads_settings=False,
            )
        ]


SERVERS = (
    DummyServer("kafka", lambda settings: settings.kafka.port, lambda settings: settings.kafka.heap_mb),
    DummyServer(
        "registry", lambda settings: settings.registry.port, lambda settings: settings.topics.partitions
    ),
)


NAMES = tuple(server.name for server in SERVERS)


class HeldDummy:
    """A component with a server whose socket is held, and which responds with the name of the node in the settings.

    It ends at once if that name is BROKEN, and is never ready if it is SLOW.
    """

    name = "query_nodes"

    def prepare(self, _settings: Settings) -> None:
        """Do nothing: the server has no files."""

    def processes(self, settings: Settings) -> list[Process]:
        """Return the server's process."""
        (port, *_), name = settings.query_ports, settings.node.name
        fault = {BROKEN: held_server.ENDS, SLOW: held_server.NEVER_READY}.get(name, "")
        return [
            Process(
                name=self.name,
                command=(str(Tools(settings.tools).main_python), "-c", held_server.SERVER),
                start_order=20,
                is_ready=lambda: held_server.responds(port),
                port=port,
                environment={"NAME": name, "FAULT": fault, "PYTHONPATH": str(CHECKOUT)},
                port_setting="FOLDLAKE_QUERY_PORTS",
                reads_settings=False,
                held=Held("127.0.0.1", held_server.WORKERS),
            )
        ]


BROKEN, SLOW = "broken", "slow"
HELD = HeldDummy()


def components() -> dict[str, DummyServer | HeldDummy]:
    """Return the dummies by name, as `stack.lifecycle.component_modules` returns the components."""
    return {server.name: server for server in (*SERVERS, HELD)}


def hold_back(settings: Settings) -> None:
    """Keep the servers of this home from becoming ready, so that a start waits for them."""
    _hold_file(settings).parent.mkdir(parents=True, exist_ok=True)
    _hold_file(settings).touch()


def release(settings: Settings) -> None:
    """Undo `hold_back`."""
    _hold_file(settings).unlink()


def listens(port: int) -> bool:
    """Whether a process listens on this local port."""
    with closing(socket.socket()) as client:
        client.settimeout(CONNECT_TIMEOUT_S)
        return client.connect_ex(("127.0.0.1", port)) == 0


def ready(settings: Settings, name: str) -> bool:
    """Whether a server is ready."""
    return next(process for process in lifecycle.all_processes(settings) if process.name == name).is_ready()


def restarts(settings: Settings, name: str) -> int:
    """Return how often a server has been restarted."""
    return next(status.restarts for status in process_statuses(settings) if status.name == name)


def pid(settings: Settings, name: str) -> int:
    """Return the id of a server's process."""
    found = Supervisor(settings).states()[name].pid
    assert found is not None
    return found


def command_line(settings: Settings, *arguments: str) -> subprocess.Popen[str]:
    """Run the command line with the dummy servers."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.dummy_servers", *arguments],
        env={**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT)},
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def is_replaced(settings: Settings, name: str, killed: int) -> bool:
    """Whether another process than the one that was killed is ready."""
    return Supervisor(settings).states()[name].pid not in {None, killed} and ready(settings, name)


def install() -> None:
    """Make this process start dummies instead of real servers."""
    lifecycle.component_modules = components  # type: ignore[assignment]  # the same functions, not in a module


def _hold_file(settings: Settings) -> Path:
    return settings.home / "hold-back"


if __name__ == "__main__":
    install()
    main()
