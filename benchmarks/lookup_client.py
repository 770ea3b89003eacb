"""A client that asks as fast as it is answered: a process with raw connections, each answer compared with the truth."""

import random
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.queues import Queue

END_OF_HEAD = b"\r\n\r\n"
RECEIVE_BYTES = 65_536
GRACE_S = 60.0


@dataclass(frozen=True)
class Answered:
    """What came of a run: the time of each lookup, in milliseconds, and how many were not exact."""

    milliseconds: list[float]
    wrong: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Lookups per second, all connections together."""
        return len(self.milliseconds) / self.seconds


@dataclass
class _Connection:
    socket: socket.socket
    expected: bytes = b""
    asked_at: float = 0.0
    received: bytes = field(default=b"")


def ask(
    ports: Sequence[int], questions: Sequence[tuple[str, str]], connections: int, seconds: float
) -> Answered:
    """Ask (customer, balance as text) questions at random over that many connections, spread over the ports."""
    context = get_context("spawn")
    results: Queue[Answered] = context.Queue()
    process = context.Process(
        target=_run, args=(tuple(ports), list(questions), connections, seconds, results)
    )
    process.start()
    answered = results.get(timeout=seconds + GRACE_S)
    process.join()
    return answered


def _run(
    ports: tuple[int, ...],
    questions: list[tuple[str, str]],
    connections: int,
    seconds: float,
    results: "Queue[Answered]",
) -> None:
    prepared = [
        (
            f"GET /api/customers.getBalance?customerId={customer} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(),
            f'{{"amount":{amount}}}'.encode(),
        )
        for customer, amount in questions
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
        connection.asked_at = time.perf_counter()
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
            milliseconds.append((time.perf_counter() - connection.asked_at) * 1000)
            wrong += body != connection.expected
            send(connection)
    results.put(Answered(milliseconds, wrong, time.perf_counter() - began))
    for connection in open_connections.values():
        connection.socket.close()


def _body(received: bytes) -> bytes | None:
    """Return the body of a response, or None while it is not complete; anything but 200 is no answer."""
    head, end, body = received.partition(END_OF_HEAD)
    if not end:
        return None
    start = head.lower().index(b"content-length:") + len(b"content-length:")
    length = int(head[start:].split(b"\r\n", 1)[0])
    if len(body) < length:
        return None
    return body if head.startswith(b"HTTP/1.1 200") else b""
