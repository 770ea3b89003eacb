"""A request has one id on both nodes: in the answer, in their logs, and in the event that it writes."""

import json
from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest
from confluent_kafka import TopicPartition

from include.kafka.log_reading import log_consumer
from tests.support.commands import ADD
from tests.support.http.local_http import HTTP
from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

HEADER = "X-Request-Id"
NODES = ("node-1", "node-2")


def look_up(nodes: NodeStack, customer: str, headers: dict[str, str]) -> httpx.Response:
    url = f"http://127.0.0.1:{nodes.ports[0]}/api/customers.getBalance"
    return HTTP.get(url, params={"customerId": customer}, headers=headers)


@pytest.fixture
def proxied_customer(nodes: NodeStack) -> str:
    """A customer whose lookup on the first node is answered by the second one."""
    return nodes.owned_customer(nodes.ports[1])


def logged_by(nodes: NodeStack, request_id: str) -> set[str]:
    """Return the nodes whose access log has a lookup with this id."""
    folder = nodes.settings.home / "logs"
    found = set()
    for node in NODES:
        lines = (folder / f"{node}-access.jsonl").read_text(encoding="utf-8").splitlines()
        if any(json.loads(line)["request_id"] == request_id for line in lines):
            found.add(node)
    return found


@pytest.mark.parametrize("given", ["seen/1", "", "not well formed"])
def test_both_nodes_log_a_proxied_lookup_under_one_id(
    nodes: NodeStack, proxied_customer: str, given: str
) -> None:
    answer = look_up(nodes, proxied_customer, {HEADER: given} if given else {})

    assert (answer.status_code, answer.headers["Foldlake-Node"]) == (200, "node-2")
    known = answer.headers[HEADER]
    assert (known == given) == (given == "seen/1")
    wait_until(lambda: logged_by(nodes, known) == set(NODES), "both nodes have logged the lookup")


def test_a_problem_of_another_node_has_the_id_of_the_request(nodes: NodeStack) -> None:
    for number in range(16):
        answer = look_up(nodes, f"nobody {number}", {})
        assert answer.status_code == 404
        assert answer.json()["requestId"] == answer.headers[HEADER]


def test_an_event_has_the_id_of_its_command(nodes: NodeStack) -> None:
    answer = HTTP.post(
        f"http://127.0.0.1:{nodes.ports[0]}{ADD}",
        json={"customerId": "1", "amount": "1.00"},
        headers={HEADER: "of-a-command"},
    )

    assert (answer.status_code, answer.headers[HEADER]) == (202, "of-a-command")
    position = answer.json()["position"]
    with closing(log_consumer(nodes.settings.kafka_connection)) as consumer:
        consumer.assign([TopicPartition("balance", position["partition"], position["offset"])])
        event = consumer.poll(10.0)
    assert event is not None
    assert dict(event.headers() or ()) == {"request-id": b"of-a-command"}


@pytest.fixture
def json_node(nodes: NodeStack) -> Iterator[ExtraNode]:
    """A third node, whose logs are JSON."""
    (port,) = free_ports(1)
    node = ExtraNode(nodes.settings, "node-3", port, log_format="json")
    try:
        yield node
    finally:
        node.stop()


def test_every_line_of_a_node_is_an_object(nodes: NodeStack, json_node: ExtraNode) -> None:
    wait_until(lambda: nodes.is_ready(json_node.port), "the node is ready")
    json_node.stop()

    lines = [json.loads(line) for line in json_node.log().splitlines()]
    assert {line["role"] for line in lines} >= {"materializer", "server"}
    assert {line["node"] for line in lines} == {"node-3"}
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)
