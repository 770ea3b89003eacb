"""The HTTP server of a query node alone: what it answers while its materializer, Kafka and the registry are down."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from include.nodes.peer_tls import health_context
from include.settings import CHECKOUT, Settings, settings_environment
from query_api.listener import VARIABLE, Role, listener_of
from tests.support.http.local_http import HTTP
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

DEADLINE_S = 60.0
# Nothing listens on this port.
NOWHERE = "127.0.0.1:1"


class HttpServer:
    """A running server; `settings` are those of its node. port: that of the listener of this role."""

    def __init__(self, settings: Settings, role: Role = Role.CALLERS) -> None:
        self.settings = settings
        listener = listener_of(settings, role)
        self.port, self._files = listener.port, listener.files
        self._log = settings.home / "http.log"
        environment = {
            **os.environ,
            **settings_environment(settings),
            VARIABLE: str(role),
            "PYTHONPATH": str(CHECKOUT),
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "query_api.server"],
                env=environment,
                cwd=CHECKOUT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def get(self, path: str, timeout_s: float = 10.0) -> httpx.Response:
        """Send a request on a connection of its own. A server for peers gets its own certificate."""
        if self._files is None:
            return HTTP.get(f"http://127.0.0.1:{self.port}{path}", timeout=timeout_s)
        context = health_context(self._files)
        return httpx.get(
            f"https://127.0.0.1:{self.port}{path}", timeout=timeout_s, trust_env=False, verify=context
        )

    def workers(self) -> list[psutil.Process]:
        """Return the worker processes."""
        return psutil.Process(self._process.pid).children()

    def watched(self) -> set[int]:
        """Return the local ports of the connections of the server's main process to its workers."""
        connections = psutil.Process(self._process.pid).net_connections("tcp")
        return {one.laddr.port for one in connections if one.raddr and one.raddr.port == self.port}

    def is_answering(self) -> bool:
        """Whether the server is alive."""
        return self.get("/healthz").status_code == 200

    def log(self) -> str:
        """Return its output."""
        return self._log.read_text(encoding="utf-8")

    def stop(self) -> None:
        """Stop the server."""
        self._process.terminate()
        try:
            self._process.wait(DEADLINE_S)
        finally:
            self._process.kill()


@contextmanager
def http_server(home: Path, role: Role = Role.CALLERS, **overrides: object) -> Iterator[HttpServer]:
    """Run a server whose files are in the directory `home`; overrides: settings by variable, for example `node_http_workers`."""
    port, peer_port = free_ports(2)
    server = HttpServer(
        Settings.of(
            home=home,
            node_port=port,
            node_peer_port=peer_port,
            query_ports=(port,),
            kafka_bootstrap=NOWHERE,
            schema_registry_url=f"http://{NOWHERE}",
            **overrides,
        ),
        role,
    )
    try:
        wait_until(server.is_answering, "the HTTP server answers", DEADLINE_S)
        yield server
    finally:
        server.stop()
