"""HTTP requests as bytes on a socket, for what no HTTP client sends."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

TIMEOUT_S = 10.0


@dataclass(frozen=True)
class RawResponse:
    """A response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


def send_and_close(port: int, request: bytes) -> None:
    """Send bytes to a server on this machine, and close the connection without reading a response."""
    with closing(_connect(port)) as connection:
        connection.sendall(request)


def exchange(port: int, request: bytes) -> RawResponse:
    """Send bytes to a server on this machine, and return its response."""
    with closing(_connect(port)) as connection:
        connection.sendall(request)
        return receive(connection)


def receive(connection: socket.socket) -> RawResponse:
    """Return the next response on a connection, which stays open."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return RawResponse(response.status, headers, response.read())


@contextmanager
def connections(
    port: int, number: int, sent: bytes = b"", client: str = "127.0.0.1"
) -> Iterator[list[socket.socket]]:
    """Open connections from a client's address, send the same bytes on each, and close them after the block."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_S, source_address=(client, 0))
            opened.append(stack.enter_context(connection))
            connection.sendall(sent)
        yield opened


def request_head(method: str, path: str, *headers: str) -> bytes:
    """Return a request's first line and headers, exactly as given."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode("latin-1")


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
