"""Clients that measure lookups: one that sends requests back to back, and a connection for single requests.

Neither uses httpx: a request costs 0.9 ms of CPU time on the client, compared to 0.2 ms with `http.client` (measured
against a server that answers immediately). On one machine, the client would dominate the measurement.
"""

import http.client
import random
import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.queues import Queue

END_OF_HEAD = b"\r\n\r\n"
RECEIVE_BYTES = 65_536
GRACE_S = 60.0
REQUEST_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class LookupRun:
    """The result of a run: the duration of each lookup in milliseconds, and the number of wrong answers."""

    milliseconds: list[float]
    wrong: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Lookups per second over all connections."""
        return len(self.milliseconds) / self.seconds


class NodeConnection:
    """One open connection to the query node on a port."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_TIMEOUT_S)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """Return status and body of the response to a GET; raises OSError when the node does not answer."""
        self._connection.request("GET", path, headers=headers or {})
        response = self._connection.getresponse()
        return response.status, response.read()

    def timed_get(self, path: str) -> float:
        """Return how long a GET takes that is answered with 200, in milliseconds."""
        began_s = time.perf_counter()
        status, body = self.get(path)
        assert status == http.client.OK, body
        return (time.perf_counter() - began_s) * 1000

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@dataclass
class _Connection:
    socket: socket.socket
    expected: bytes = b""
    sent_at: float = 0.0
    received: bytes = field(default=b"")


def run_lookups(
    ports: Sequence[int],
    balances: Sequence[tuple[str, str]],
    connections: int,
    seconds: float,
    secret: str = "",
) -> LookupRun:
    """Look up random customers of (customer, balance as text) over several connections, distributed over the ports.

    secret: an API key, which each request then has.
    """
    context = get_context("spawn")
    results: Queue[LookupRun] = context.Queue()
    header = f"Authorization: Bearer {secret}\r\n" if secret else ""
    arguments = (tuple(ports), list(balances), connections, seconds, header, results)
    process = context.Process(target=_run, args=arguments)
    process.start()
    run = results.get(timeout=seconds + GRACE_S)
    process.join()
    return run


def _run(
    ports: tuple[int, ...],
    balances: list[tuple[str, str]],
    connections: int,
    seconds: float,
    header: str,
    results: "Queue[LookupRun]",
) -> None:
    prepared = [
        (
            f"GET /api/customers.getBalance?customerId={customer} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode(),
            f'{{"amount":{amount}}}'.encode(),
        )
        for customer, amount in balances
    ]
    chooser = random.Random(1)
    poller = select.epoll()
    open_connections = {}
    for number in range(connections):
        connected = socket.create_connection(("127.0.0.1", ports[number % len(ports)]))
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        open_connections[connected.fileno()] = _Connection(connected)
        poller.register(connected.fileno(), select.EPOLLIN)

    def send(connection: _Connection) -> None:
        request, connection.expected = prepared[chooser.randrange(len(prepared))]
        connection.received = b""
        connection.sent_at = time.perf_counter()
        connection.socket.sendall(request)

    milliseconds: list[float] = []
    wrong = 0
    began = time.perf_counter()
    for connection in open_connections.values():
        send(connection)
    while time.perf_counter() < began + seconds:
        for file_number, _ in poller.poll(1):
            connection = open_connections[file_number]
            connection.received += connection.socket.recv(RECEIVE_BYTES)
            body = _body(connection.received)
            if body is None:
                continue
            milliseconds.append((time.perf_counter() - connection.sent_at) * 1000)
            wrong += body != connection.expected
            send(connection)
    results.put(LookupRun(milliseconds, wrong, time.perf_counter() - began))
    for connection in open_connections.values():
        connection.socket.close()


def _body(received: bytes) -> bytes | None:
    """Return a response's body: None while it is incomplete, empty unless the status is 200."""
    head, end, body = received.partition(END_OF_HEAD)
    if not end:
        return None
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    length = int(head[start:].split(b"\r\n", 1)[0])
    if len(body) < length:
        return None
    return body if head.startswith(b"HTTP/1.1 200") else b""
