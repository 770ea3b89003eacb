"""A TCP proxy between one client of Kafka and the broker, which can stop forwarding or refuse connections.

Kafka's clients learn the broker's address from its responses. The proxy replaces it there by its own, which has the same length:
the same host, and a port of four bytes.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.repetition import repeated
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

LENGTH_BYTES = 4
RECEIVE_BYTES = 65_536
HOST = "127.0.0.1"


class KafkaProxy:
    """Forwards connections to the broker on `broker_port` of this machine; `close` ends it."""

    def __init__(self, broker_port: int, port: int) -> None:
        """Listen on `port`."""
        self._broker_port = broker_port
        self.port = port
        self._is_forwarding = threading.Event()
        self._is_forwarding.set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self._broker_address = HOST.encode() + broker_port.to_bytes(LENGTH_BYTES)
        self._own_address = HOST.encode() + port.to_bytes(LENGTH_BYTES)
        self._listen()

    @property
    def bootstrap_servers(self) -> str:
        """The proxy's address, for a client of Kafka."""
        return f"{HOST}:{self.port}"

    def stop_forwarding(self) -> None:
        """Keep all connections, and accept new ones, but forward nothing."""
        self._is_forwarding.clear()

    def refuse(self) -> None:
        """Drop all connections, and refuse new ones."""
        with self._lock:
            if self._listener is not None:
                _hang_up(self._listener)
                self._listener = None
            for connection in self._connections:
                _hang_up(connection)
            self._connections.clear()
        self._is_forwarding.set()

    def forward(self) -> None:
        """Forward again."""
        self._is_forwarding.set()
        with self._lock:
            if self._listener is None:
                self._listen()

    def _listen(self) -> None:
        listener = self._listener = socket.create_server((HOST, self.port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._connect(client, listener)

    def _connect(self, client: socket.socket, listener: socket.socket) -> None:
        try:
            broker = socket.create_connection((HOST, self._broker_port))
        except OSError:
            client.close()
            return
        for connection in (client, broker):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            if self._listener is not listener:
                client.close()
                broker.close()
                return
            self._connections |= {client, broker}
        for source, sink, chunks in ((client, broker, _received), (broker, client, self._responses)):
            threading.Thread(target=self._pump, args=(source, sink, chunks), daemon=True).start()

    def _pump(
        self,
        source: socket.socket,
        sink: socket.socket,
        chunks: Callable[[socket.socket], Iterator[bytes]],
    ) -> None:
        with suppress(OSError):
            for chunk in chunks(source):
                self._is_forwarding.wait()
                sink.sendall(chunk)
        for connection in (source, sink):
            _hang_up(connection)
        with self._lock:
            self._connections -= {source, sink}

    def _responses(self, source: socket.socket) -> Iterator[bytes]:
        """Yield the broker's responses, each whole, so that no address is split."""
        received = bytearray()
        for chunk in _received(source):
            received += chunk
            while len(received) >= LENGTH_BYTES:
                end = LENGTH_BYTES + int.from_bytes(received[:LENGTH_BYTES])
                if len(received) < end:
                    break
                yield bytes(received[:end]).replace(self._broker_address, self._own_address)
                del received[:end]


def _received(source: socket.socket) -> Iterator[bytes]:
    while chunk := source.recv(RECEIVE_BYTES):
        yield chunk


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def proxied_node(nodes: NodeStack, **overrides: object) -> Iterator[tuple[ExtraNode, KafkaProxy]]:
    """Run a further node that reaches Kafka through a proxy; at the end, its partitions move to others."""
    assert nodes.servers is not None
    port, proxy_port = free_ports(2)
    proxy = KafkaProxy(nodes.servers.kafka.port, proxy_port)
    name, servers = f"lonely-{port}", proxy.bootstrap_servers
    node = ExtraNode(nodes.settings.changed(**overrides), name, port, kafka_bootstrap=servers)
    try:
        # The group may remove it while it cannot reach Kafka; it then ends, as for a supervisor.
        with repeated(node.revive, pause_s=1.0):
            yield node, proxy
    finally:
        node.kill()
        proxy.refuse()
    wait_until(nodes.is_settled, "its partitions are owned by others")
