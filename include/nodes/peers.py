"""The HTTP client of query nodes, for other nodes, checks and rebuilds: plain sockets with pooled connections.

Every proxied lookup uses it, and a client library costs more than the lookup itself. It supports only GET and
Content-Length. A node whose URL begins with https is reached by TLS. For other servers, use httpx.
"""

import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from include.nodes.field_names import FIELD_NAMES_HEADER, FieldNames
from include.nodes.node_url import DEFAULT_PORTS
from include.nodes.peer_tls import ClientTls
from include.observability.request_context import forwarded_headers

# A request that carries this header comes from another node or from a check, and is never proxied again. Its value states
# which node may answer: only the owner, any node that has the key, or any of those that has confirmed its partition recently.
HOP_HEADER = "Foldlake-Hop"
HOP_OWNER = "owner"
HOP_ANY = "any"
HOP_CURRENT = "current"
# `<version>/<changelog offset>`. In a request with a hop header: the offset before which the answering node must have read the
# changelog of the key's partition. In its answer: the offset after the record that it answers with.
SERVED_HEADER = "Foldlake-Served"
# Why a node cannot answer: one of the closed set of failure reasons.
REASON_HEADER = "Foldlake-Reason"
# How old an answer can be, in milliseconds, by the clock of the node that answers.
LAG_HEADER = "Foldlake-Lag-Ms"
# The time up to which an answer contains everything that the changelog contained, by the clock of the node that answers.
AS_OF_HEADER = "Foldlake-As-Of"
# The version of the read model that an answer is from.
VERSION_HEADER = "Foldlake-Version"
# A request with a hop header and without this one comes from a program of an earlier release, which reads only the old names.
NEW_NAMES = f"{FIELD_NAMES_HEADER}: {FieldNames.CAMEL}\r\n"
CONNECT_TIMEOUT_S = 0.25
ANSWER_TIMEOUT_S = 0.5
# A node that did not respond gets no request for this time: its standby answers without a failed attempt for each lookup.
DOWN_S = 0.5
POOLED_CONNECTIONS = 256
# Requests to other nodes at the same time, in each worker process. Each one occupies a thread, and while two nodes ask each other, each
# needs further threads for the other's requests. A request beyond the limit goes the way of one to a node that does not respond.
CONCURRENT_REQUESTS = 96
# Of these, what lookups that wait for a bound leave to the others.
RESERVED_REQUESTS = 32
RECEIVE_BYTES = 65_536
MAX_RESPONSE_BYTES = 16 * 1024 * 1024
END_OF_HEAD = b"\r\n\r\n"
MAX_HEAD_BYTES = 64 * 1024
# Fits into 63 bits, in which the node counts offsets.
SERVED_TEXT = re.compile(r"([0-9]{1,9})/([0-9]{1,18})")


class ServedOffset(NamedTuple):
    """A changelog offset of a version up to which a key's partition has been answered; the changelog record before it is included."""

    version: int
    offset: int

    @property
    def text(self) -> str:
        """The header's value."""
        return f"{self.version}/{self.offset}"

    @classmethod
    def parse(cls, text: str | None) -> "ServedOffset | None":
        """Read the header's value; None for none and for an invalid one, which only another program sends."""
        matched = SERVED_TEXT.fullmatch(text or "")
        return None if matched is None else cls(int(matched[1]), int(matched[2]))


class Hop(NamedTuple):
    """What a request from another node says: which node may answer, and what the answer must cover."""

    rule: str
    served: ServedOffset | None = None


class PeerDownError(Exception):
    """A node did not respond, or not in HTTP, or was not asked because too many requests to other nodes are in progress."""


@dataclass(frozen=True)
class PeerResponse:
    """The response of a node; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


Around = Callable[[str, Callable[[], PeerResponse]], PeerResponse]


class Peer:
    """The client of one other node. Thread-safe.

    tls: of the connections to a node that is reached by TLS. free: one item for each request that may be added; shared by the clients of
    all nodes. around: sends a request to this URL by calling the function, for example to measure it.
    """

    def __init__(
        self,
        url: str,
        free: "deque[None] | None" = None,
        tls: ClientTls | None = None,
        around: "Around | None" = None,
    ) -> None:
        self._around = around
        self._url = url
        self._free = deque([None] * CONCURRENT_REQUESTS) if free is None else free
        parts = urlsplit(url)
        self._tls = (tls or ClientTls()) if parts.scheme == "https" else None
        self._address = (parts.hostname or "", parts.port or DEFAULT_PORTS.get(parts.scheme, 80))
        self._host = parts.netloc
        self._idle: list[socket.socket] = []
        self._down_until = 0.0

    @property
    def is_down(self) -> bool:
        """Whether the node failed to respond within the last DOWN_S seconds."""
        return time.monotonic() < self._down_until

    def get(
        self, target: str, hop: str, timeout_s: float = ANSWER_TIMEOUT_S, served: "ServedOffset | None" = None
    ) -> PeerResponse:
        """Send a GET for a target (path and query) with `hop` in the hop header; raises PeerDownError."""
        is_waiting = timeout_s > ANSWER_TIMEOUT_S
        try:
            if is_waiting and len(self._free) <= RESERVED_REQUESTS:
                raise self._refused()
            self._free.pop()
        except IndexError:
            raise self._refused() from None
        try:
            send = partial(self._get, target, hop, timeout_s, served)
            return send() if self._around is None else self._around(self._url, send)
        finally:
            self._free.append(None)

    def close(self) -> None:
        """Close the pooled connections."""
        while self._idle:
            self._idle.pop().close()

    def _get(self, target: str, hop: str, timeout_s: float, served: ServedOffset | None) -> PeerResponse:
        more = forwarded_headers()
        if served is not None:
            more += f"{SERVED_HEADER}: {served.text}\r\n"
        head = f"GET {target} HTTP/1.1\r\nHost: {self._host}\r\n{HOP_HEADER}: {hop}\r\n{NEW_NAMES}{more}\r\n"
        request = head.encode("latin-1")
        try:
            pooled = self._idle.pop()
        except IndexError:
            pooled = None
        if pooled is not None:
            try:
                return self._exchange(pooled, request, timeout_s)
            except TimeoutError as error:
                raise self._down(error) from error
            except OSError:
                pass  # the node closed the idle connection: a new one shows whether the node is up
        try:
            return self._exchange(self._connected(timeout_s), request, timeout_s)
        except OSError as error:
            raise self._down(error) from error

    def _connected(self, timeout_s: float) -> socket.socket:
        """Return a new connection; raises OSError, also for a certificate that is not valid for the node's host."""
        connection = socket.create_connection(self._address, CONNECT_TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return connection
        connection.settimeout(timeout_s)
        try:
            return self._tls.context().wrap_socket(connection, server_hostname=self._address[0])
        except BaseException:
            connection.close()
            raise

    def _refused(self) -> PeerDownError:
        return PeerDownError(f"{self._host} is not asked: too many requests to other nodes are in progress")

    def _down(self, error: OSError) -> PeerDownError:
        self._down_until = time.monotonic() + DOWN_S
        self._idle.clear()
        return PeerDownError(f"{self._host}: {error}")

    def _exchange(self, connection: socket.socket, request: bytes, timeout_s: float) -> PeerResponse:
        try:
            connection.settimeout(timeout_s)
            connection.sendall(request)
            response = _receive(connection)
        except BaseException:
            connection.close()
            raise
        if response.headers.get("connection", "").lower() == "close" or len(self._idle) >= POOLED_CONNECTIONS:
            connection.close()
        else:
            self._idle.append(connection)
        return response


def _receive(connection: socket.socket) -> PeerResponse:
    received = connection.recv(RECEIVE_BYTES)
    while END_OF_HEAD not in received:
        more = connection.recv(RECEIVE_BYTES) if received else b""
        if not more:
            raise ConnectionResetError("closed before the response was complete")
        received += more
        if len(received) > MAX_HEAD_BYTES + RECEIVE_BYTES:
            raise ConnectionResetError(f"a response whose headers exceed {MAX_HEAD_BYTES} bytes")
    head, _, body = received.partition(END_OF_HEAD)
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    try:
        status = int(status_line.split(" ", 2)[1])
        length = int(headers["content-length"])
    except (KeyError, ValueError, IndexError) as error:
        raise ConnectionResetError(f"not a response of a query node: {status_line[:80]!r}") from error
    if length > MAX_RESPONSE_BYTES:
        raise ConnectionResetError(f"a response of {length} bytes, over the limit of {MAX_RESPONSE_BYTES}")
    if len(body) < length:
        body = _rest_of_body(connection, body, length)
    return PeerResponse(status, headers, body)


def _rest_of_body(connection: socket.socket, begun: bytes, length: int) -> bytes:
    body = bytearray(begun)
    while len(body) < length:
        more = connection.recv(RECEIVE_BYTES)
        if not more:
            raise ConnectionResetError("closed before the body was complete")
        body += more
    return bytes(body)


class Peers:
    """The clients of all nodes, by URL. One for each HTTP worker process, check or rebuild stage."""

    def __init__(self, tls: ClientTls | None = None, around: Around | None = None) -> None:
        self._around = around
        self._tls = tls or ClientTls()
        self._peers: dict[str, Peer] = {}
        self._free: deque[None] = deque([None] * CONCURRENT_REQUESTS)
        self._adding = threading.Lock()

    def at(self, url: str) -> Peer:
        """Return the client of the node at this URL."""
        peer = self._peers.get(url)
        if peer is None:
            with self._adding:
                peer = self._peers.setdefault(url, Peer(url, self._free, self._tls, self._around))
        return peer

    def close(self) -> None:
        """Close the pooled connections."""
        for peer in self._peers.values():
            peer.close()
