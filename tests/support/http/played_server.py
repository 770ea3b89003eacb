"""A server that plays the replies of another one: of a registry, of a proxy in front of it, of Airflow."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

Server = TypeVar("Server", bound=ThreadingHTTPServer)

HTML = "<html><body><h1>Sign in</h1></body></html>"


@dataclass(frozen=True)
class Reply:
    """A reply; a body that is no text is sent as JSON. delay_s: before it is sent."""

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


class PlayedServer(ThreadingHTTPServer):
    """Replies to `METHOD /path` with `replies`, to all others with `otherwise`; a query is not part of the path."""

    daemon_threads = True

    def __init__(self) -> None:
        self.replies: dict[str, Reply] = {}
        self.otherwise = Reply(404, HTML)
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: PlayedServer

    def _reply(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = f"{self.command} {self.path.partition('?')[0]}"
        self.server.requests.append(request)
        reply = self.server.replies.get(request, self.server.otherwise)
        time.sleep(reply.delay_s)
        body = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
        try:
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(body)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            return  # the client did not wait

    do_GET = do_POST = do_PATCH = do_PUT = _reply  # noqa: N815 - named by the library

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serve in a thread during a block, and close the server at its end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def played_server() -> Iterator[PlayedServer]:
    """Run a server during a block."""
    with serving(PlayedServer()) as server:
        yield server
