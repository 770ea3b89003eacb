"""Keeps a connection to each node for each thread, for many short requests: a full HTTP client takes several times the processor time."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """A node's answer: HTTP status, headers and text."""

    status: int
    headers: HTTPMessage
    text: str


class KeptConnections:
    """The connections of this process's threads to some servers. Thread-safe."""

    def __init__(self, headers: Mapping[str, str], timeout_s: float) -> None:
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._of_thread = threading.local()
        self._all: list[HTTPConnection] = []

    def get(self, base_url: str, target: str) -> Answer | None:
        """Return the answer to a GET request; None if there is none: the next request opens a new connection."""
        connection = self._connection(base_url)
        try:
            connection.request("GET", target, headers=self._headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        except (OSError, HTTPException, UnicodeDecodeError):
            connection.close()
            return None

    def close(self) -> None:
        """Close all connections."""
        for connection in self._all:
            connection.close()

    def _connection(self, base_url: str) -> HTTPConnection:
        own: dict[str, HTTPConnection] = self._of_thread.__dict__.setdefault("connections", {})
        if base_url not in own:
            parts = urlsplit(base_url)
            kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
            own[base_url] = kind(parts.netloc, timeout=self._timeout_s)
            self._all.append(own[base_url])
        return own[base_url]
