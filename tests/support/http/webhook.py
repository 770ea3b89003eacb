"""A webhook that accepts or rejects alerts, and keeps their bodies."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class Webhook(HTTPServer):
    """A server that answers each alert with `status`."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """The URL for FOLDLAKE_ALERT_WEBHOOK_URL."""
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    """Handles one alert."""

    server: Webhook

    def do_POST(self) -> None:
        """Store the body."""
        length = int(self.headers["Content-Length"])
        self.server.received.append(json.loads(self.rfile.read(length)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def running_webhook() -> Iterator[Webhook]:
    """Run a webhook during a block."""
    with Webhook() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
