"""Readiness probes over HTTP: for the schema registry, whose compatibility rule they set, and for a query node."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from stack.components import query_nodes, registry
from tests.support.temporary_stack import free_ports

CONFIG = "/apis/ccompat/v7/config"


class Servers(BaseHTTPRequestHandler):
    """Serves a registry's configuration and a node's health page."""

    level = "NONE"
    healthz_status = 200

    def do_GET(self) -> None:
        """Return the rule, or the health."""
        if self.path == CONFIG:
            self._send(200, {"compatibilityLevel": type(self).level})
        else:
            self._send(type(self).healthz_status if self.path == "/healthz" else 404, {})

    def do_PUT(self) -> None:
        """Set the rule."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).level = body["compatibility"]
        self._send(200, body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _send(self, status: int, body: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    # If the requests used the user's proxy, all would fail.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setattr(Servers, "level", "NONE")
    with ThreadingHTTPServer(("127.0.0.1", 0), Servers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_the_registry_is_ready_once_it_has_the_compatibility_rule(port: int) -> None:
    assert not registry._is_ready(port)
    assert Servers.level == registry.COMPATIBILITY
    assert registry._is_ready(port)


def test_a_node_is_ready_when_its_health_page_returns_200(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert query_nodes._is_ok(port, "healthz")
    monkeypatch.setattr(Servers, "healthz_status", 503)
    assert not query_nodes._is_ok(port, "healthz")


def test_a_server_that_is_down_is_not_ready() -> None:
    (port,) = free_ports(1)

    assert not registry._is_ready(port)
    assert not query_nodes._is_ok(port, "healthz")
