"""TLS and basic authentication in front of a real schema registry that has neither, as a reverse proxy adds them."""

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.http.local_http import HTTP
from tests.support.security.certificates import HOST

PASSED_ON = frozenset({"content-type", "accept"})


class _Proxy(ThreadingHTTPServer):
    """Passes requests with the right credentials on to `target`. refused: the number of the other requests."""

    daemon_threads = True
    refused = 0

    def __init__(self, target: str, authorization: str) -> None:
        self.target = target
        self.authorization = authorization
        super().__init__((HOST, 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """Passes one request on."""

    server: _Proxy
    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Authorization") != self.server.authorization:
            self.server.refused += 1
            self._reply(401, b'{"error_code": 40101, "message": "who are you?"}', "application/json")
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() in PASSED_ON}
        url = f"{self.server.target}{self.path}"
        answer = HTTP.request(self.command, url, content=body, headers=headers)
        self._reply(answer.status_code, answer.content, answer.headers.get("Content-Type", ""))

    do_GET = do_POST = do_PUT = do_DELETE = _pass_on  # noqa: N815 - the names that the server calls

    def _reply(self, status: int, content: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def secured_registry(
    registry_port: int, certificate: tuple[Path, Path], username: str, password: str
) -> Iterator[str]:
    """Run the proxy in front of the registry on a port of this machine; yield the URL of the proxy without a path.

    certificate: the files of the proxy's certificate and of its key.
    """
    credentials = base64.b64encode(f"{username}:{password}".encode()).decode()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with _Proxy(f"http://{HOST}:{registry_port}", f"Basic {credentials}") as proxy:
        proxy.socket = context.wrap_socket(proxy.socket, server_side=True)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"https://{HOST}:{proxy.server_address[1]}"
        proxy.shutdown()
