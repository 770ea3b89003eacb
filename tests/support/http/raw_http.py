"""HTTP requests as bytes on a socket, for what no HTTP client sends."""

import http.client
import socket
from contextlib import closing
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
        response = http.client.HTTPResponse(connection)
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return RawResponse(response.status, headers, response.read())


def request_head(method: str, path: str, *headers: str) -> bytes:
    """Return a request's first line and headers, exactly as given."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", *headers, "", ""]).encode("latin-1")


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
