"""Two nodes over a changelog that the tests write: one under the supervisor, and one that stays dead when it is killed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import httpx

from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import decode_state_record
from include.nodes.node_url import PeerRule
from include.nodes.record_client import NodeClient
from include.nodes.record_requests import NO_SAMPLING
from include.nodes.record_stream import stream_records
from include.settings import Placement, Settings
from tests.support.http.local_http import HTTP
from tests.support.listing.whole_listing import PATH, list_all
from tests.support.node_stack import ExtraNode, NodeStack, node_stack
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

CUSTOMERS = 60
READY_S = 120.0


@dataclass
class TwoNodes:
    """The nodes, and how a read model is placed on them. `other` is replaced when it is started again."""

    nodes: NodeStack
    other: ExtraNode
    placement: Placement

    @property
    def first_port(self) -> int:
        """The port of the node that the supervisor runs."""
        return self.nodes.ports[0]

    @property
    def both(self) -> tuple[int, int]:
        """The ports of both nodes."""
        return self.first_port, self.other.port

    def put(self, customer: str, amount: Decimal) -> int:
        """Write a customer's next record, and return the offset of its event."""
        self.nodes.put(customer, amount)
        self.nodes.writer.flush()
        return self.nodes.event_count(customer)

    def is_exact(self) -> bool:
        """Whether both nodes return exactly what was written, by key and as a whole."""
        return self.nodes.wrong(self.both) == [] and all(self.is_listed(port) for port in self.both)

    def is_listed(self, port: int) -> bool:
        """Whether a node lists exactly what was written, each key once."""
        records = list_all(self.nodes, (port,), limit=25)
        balances = {record["key"]: str(record["state"]["amount"]) for record in records}
        return len(records) == len(balances) and balances == self.expected

    @property
    def expected(self) -> dict[str, str]:
        """What was written, as the nodes return it."""
        return {key: str(amount) for key, amount in self.nodes.expected.items()}

    def wait_until_exact(self) -> None:
        """Wait until `is_exact`."""
        wait_until(self.is_exact, "both nodes return what was written")

    def wait_until_settled(self) -> None:
        """Wait until both nodes are ready and own partitions."""
        wait_until(lambda: self.nodes.is_settled(self.other.port), "both nodes own partitions")

    def answering_node(self, port: int, customer: str) -> str:
        """Return the name of the node from which an answer of this one comes."""
        answer = self.nodes.balance(port, customer)
        assert answer.status_code == 200, answer.text
        return str(answer.headers["Foldlake-Node"])

    def after_write(self, port: int, customer: str, min_offset: int) -> httpx.Response:
        """Return a node's answer that contains the event at this offset, or its refusal."""
        query = f"customerId={quote(customer)}&minOffset={min_offset}"
        return HTTP.get(f"http://127.0.0.1:{port}/api/customers.getBalance?{query}")

    def partition(self, port: int, partition: int) -> dict[str, Any]:
        """Return a node's own listing of a partition."""
        answer = self.nodes.get(port, f"{PATH}?partition={partition}&limit=1000")
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page

    def owned_by_other(self) -> list[str]:
        """Return the customers whose partitions the other node owns."""
        reports = self.nodes.get(self.first_port, "/api/partitions").json()
        partitions = {report["partition"] for report in reports if report["owner"] == self.other.url}
        keys = {record["key"] for p in partitions for record in self.partition(self.other.port, p)["records"]}
        return sorted(keys)

    def start_other(self) -> None:
        """Start the other node again, and wait until it owns partitions."""
        self.other = ExtraNode(self.nodes.settings, self.other.name, self.other.port)
        self.wait_until_settled()


@contextmanager
def two_nodes(
    servers: Settings, keep_home: Callable[[], bool], placement: Placement, **overrides: object
) -> Iterator[TwoNodes]:
    """Run two nodes with a read model in this placement, and the balances of some customers."""
    first, second = free_ports(2)
    with node_stack(
        servers,
        keep_home,
        CUSTOMERS,
        query_ports=(first,),
        placements=(f"balance={placement}",),
        **overrides,
    ) as nodes:
        placed = TwoNodes(nodes, ExtraNode(nodes.settings, "node-2", second), placement)
        try:
            placed.wait_until_settled()
            placed.wait_until_exact()
            yield placed
        finally:
            placed.other.stop()


def check_same_answers(placed: TwoNodes) -> None:
    """Assert that both nodes answer exactly, by key, as a whole and after a write, from where the placement says."""
    assert placed.is_exact()
    for customer in placed.owned_by_other()[:3]:
        answering = placed.answering_node(placed.first_port, customer)
        assert answering == ("node-1" if placed.placement.is_everywhere else "node-2")
        offset = placed.put(customer, placed.nodes.expected[customer] + 1)
        for port in placed.both:
            answer = placed.after_write(port, customer, offset)
            assert answer.text == f'{{"amount":{placed.nodes.expected[customer]}}}', answer.headers
            assert 0 <= int(answer.headers["Foldlake-Lag-Ms"]) < 60_000
    if placed.placement.is_everywhere:
        for number in range(placed.nodes.settings.topics.partitions):
            here, there = (placed.partition(port, number) for port in placed.both)
            assert here["records"] == there["records"]
            keys = [record["key"].encode() for record in here["records"]]
            assert keys == sorted(keys)
            assert here["total"] == there["total"] == len(keys)


def check_replicas(placed: TwoNodes) -> None:
    """Assert that a quality check finds every copy of every partition, each with exactly the written records."""
    settings = placed.nodes.settings
    registry = SchemaRegistry(settings.registry.connection)

    def schema_of(schema_id: int) -> RecordSchema:
        found = registry.usable_schema(schema_id)
        assert found is not None
        return found

    client = NodeClient(settings.kafka_connection, PeerRule.of_client(settings), "balance", 1, "balance")
    try:
        found = client.replicas(READY_S)
        assert found.are_complete, found
        copies = 1 if placed.placement is Placement.REDIS else 2
        partitions = list(range(settings.topics.partitions))
        assert sorted(replica.partition for replica in found.ready) == sorted(partitions * copies)
        records = [
            (record["key"], decode_state_record(record["value"], schema_of).state["amount"])
            for replica in found.ready
            for batch in stream_records(replica, "balance", 1, NO_SAMPLING, READY_S)
            for record in batch.to_pylist()
        ]
        assert sorted((key, str(amount)) for key, amount in records) == sorted(
            [*placed.expected.items()] * copies
        )
    finally:
        client.close()
