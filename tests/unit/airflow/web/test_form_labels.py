"""A dropdown names the live version of each read model, as a node knows it; without a node, it has the plain names."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from include.airflow.web import PATH, read_model_labels

# Nothing listens there.
REPORTS_URL = "http://127.0.0.1:3"
MODELS = [
    {
        "name": "balance",
        "live": 2,
        "versions": [{"version": 1, "stage": "previous"}, {"version": 2, "stage": "live"}],
    },
    {"name": "trend", "live": None, "versions": [{"version": 1, "stage": "candidate"}]},
]


@contextmanager
def node(status: int = 200) -> Iterator[int]:
    """Answer as a query node does; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == PATH
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(MODELS).encode())

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_a_label_has_the_live_version_first() -> None:
    with node() as port:
        found = read_model_labels(REPORTS_URL, (1, port), ("balance", "trend", "unknown"))

    assert found == {
        "balance": "balance (v2 live, v1 previous)",
        "trend": "trend (no live version, v1 candidate)",
    }


def test_without_a_node_there_are_no_labels() -> None:
    assert read_model_labels(REPORTS_URL, (1, 2), ("balance",)) == {}


def test_a_node_that_is_not_ready_is_passed_over() -> None:
    with node(status=503) as broken, node() as port:
        found = read_model_labels(REPORTS_URL, (broken, port), ("balance",))

    assert found == {"balance": "balance (v2 live, v1 previous)"}
