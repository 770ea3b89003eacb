"""A member of the nodes' group whose URL is refused gets no requests, and lookups of its partitions succeed."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer

from include.nodes.routing_table import GROUP
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

JOIN_TIMEOUT_S = 60.0
NO_NODE = "0.0.0.0"  # a connection to it reaches loopback
POLL_S = 0.2


@contextmanager
def counting_server() -> Iterator[tuple[int, list[object]]]:
    """Yield the port of a server on loopback, and the clients that have connected to it."""
    server = socket.create_server(("127.0.0.1", 0))
    clients: list[object] = []

    def accept() -> None:
        while True:
            try:
                connection, client = server.accept()
            except OSError:
                return
            clients.append(client)
            connection.close()

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield server.getsockname()[1], clients
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


@contextmanager
def group_member(nodes: NodeStack, client_id: str) -> Iterator[None]:
    """Join the query nodes' group with this client id, and own partitions until the end of the block."""
    consumer = Consumer(
        {
            **nodes.settings.kafka_connection.client_settings,
            "group.id": GROUP,
            "client.id": client_id,
            "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,
        }
    )
    stopping = threading.Event()

    def stay() -> None:
        while not stopping.is_set():
            consumer.poll(POLL_S)

    consumer.subscribe(["balance"])
    thread = threading.Thread(target=stay)
    thread.start()
    try:
        wait_until(consumer.assignment, "the member owns partitions", JOIN_TIMEOUT_S)
        yield
    finally:
        stopping.set()
        thread.join()
        consumer.close()


def owned_by_no_node(nodes: NodeStack, port: int) -> set[str | None]:
    """Return the owners, as one node reports them, that are none of the nodes."""
    owners = {report["owner"] for report in nodes.get(port, "/api/partitions").json()}
    return owners - {f"http://127.0.0.1:{node}" for node in nodes.ports}


def test_a_member_at_an_address_of_no_node_gets_no_requests(nodes: NodeStack) -> None:
    with counting_server() as (port, clients), group_member(nodes, f"http://{NO_NODE}:{port}"):
        wait_until(
            lambda: all(owned_by_no_node(nodes, node) for node in nodes.ports),
            "both nodes know that no node owns the member's partitions",
        )
        nodes.wait_until_exact()

        assert clients == []
        assert {owner for node in nodes.ports for owner in owned_by_no_node(nodes, node)} == {None}
    nodes.settled()
