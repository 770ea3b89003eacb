"""Many clients of a node's stream of changes, in one thread."""

import re
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# The number of a change is its source offset.
NUMBER = re.compile(rb'"sourceOffset":(\d+)')
LIVE = b"event: live"
RECEIVE_BYTES = 262_144
CONNECT_TIMEOUT_S = 60.0
WAIT_S = 0.001


@dataclass
class StreamClient:
    """A client: the numbers of the changes that it has received, and the bytes of an incomplete event."""

    connection: socket.socket
    numbers: list[int] = field(default_factory=list)
    rest: bytes = b""
    is_live: bool = False


class StreamClients:
    """Clients of one stream. latencies_ms: from the sending of a change to each client's receipt."""

    def __init__(self, port: int, target: str, count: int, sent_s: Callable[[int], float]) -> None:
        """Connect them, and wait until all are live. sent_s: returns when the change with a number was sent, by time.monotonic()."""
        self.latencies_ms: list[float] = []
        self._sent_s = sent_s
        self._selector = selectors.DefaultSelector()
        self.clients: list[StreamClient] = []
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S)
            connection.sendall(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            connection.setblocking(False)  # noqa: FBT003 - the function takes no keyword
            client = StreamClient(connection)
            self.clients.append(client)
            self._selector.register(connection, selectors.EVENT_READ, client)
        deadline_s = time.monotonic() + CONNECT_TIMEOUT_S
        while not all(client.is_live for client in self.clients):
            self.receive()
            assert time.monotonic() < deadline_s, "not all streams are live in time"

    def receive(self, wait_s: float = WAIT_S) -> None:
        """Read what has arrived, or wait briefly."""
        for ready, _ in self._selector.select(wait_s):
            client: StreamClient = ready.data
            received = client.connection.recv(RECEIVE_BYTES)
            now_s = time.monotonic()
            assert received, "the node has ended a stream"
            whole, end, client.rest = (client.rest + received).rpartition(b"\n\n")
            if not client.is_live:
                client.is_live = LIVE in whole + end
            for number in map(int, NUMBER.findall(whole)):
                client.numbers.append(number)
                self.latencies_ms.append((now_s - self._sent_s(number)) * 1000)

    def close(self) -> None:
        """Disconnect all."""
        for client in self.clients:
            client.connection.close()
        self._selector.close()
