"""A node that alone loses Kafka: other nodes answer for it, its own answers say how old they are, and in the end it is not ready."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest

from include.nodes.peers import LAG_HEADER, REASON_HEADER
from tests.support.faults.kafka_proxy import KafkaProxy, proxied_node
from tests.support.http.local_http import HTTP
from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.waiting import wait_until

MAX_AGE_S = 9.0
SESSION_TIMEOUT_S = 6


@dataclass(frozen=True)
class LonelyNode:
    """A node that reaches Kafka through a proxy, and a customer whose balance it owns."""

    name: str
    node: ExtraNode
    proxy: KafkaProxy
    customer: str

    @property
    def path(self) -> str:
        """The path of the customer's balance."""
        return f"/api/customers.getBalance?customerId={quote(self.customer, safe='')}"

    def own_lag_ms(self) -> int:
        """Return how old the node's own answer for the customer can be."""
        return int(self.node.own_answer(self.path).headers[LAG_HEADER])


@pytest.fixture(scope="module")
def proxied(running_nodes: NodeStack) -> Iterator[tuple[ExtraNode, KafkaProxy]]:
    """A third node, and the proxy through which it reaches Kafka."""
    with proxied_node(running_nodes.settled(), node_max_age_s=MAX_AGE_S) as found:
        yield found


@pytest.fixture
def lonely(running_nodes: NodeStack, proxied: tuple[ExtraNode, KafkaProxy]) -> LonelyNode:
    """The node, once it owns a partition."""
    node, proxy = proxied
    wait_until(lambda: running_nodes.is_settled(node.port), "it owns a partition")
    return LonelyNode(node.name, node, proxy, running_nodes.owned_customer(node.port))


def _assert_status_says_so(node: ExtraNode) -> None:
    """The status names Kafka, says what it means, and still has what does not depend on Kafka."""

    def sections() -> dict[str, Any]:
        found: dict[str, Any] = HTTP.get(f"{node.url}/api/status").json()["sections"]
        return found

    wait_until(lambda: not (sections()["services"]["data"] or [{"isUp": True}])[0]["isUp"], "it is noticed")
    wait_until(lambda: "Kafka" in (sections()["stream"]["error"] or ""), "the stream's section says why")
    # A reading that began before the loss ends when its client gives up.
    wait_until(lambda: sections()["versions"]["data"], "the versions are those that the node knows")
    found = sections()
    assert found["services"]["data"][0]["service"] == "Kafka"
    assert "answered from the stores" in found["services"]["data"][0]["effect"]
    assert {entry["readModel"] for entry in found["versions"]["data"]} == {"balance"}
    assert found["partitions"]["data"]


@pytest.mark.parametrize("lose_kafka", [KafkaProxy.stop_forwarding, KafkaProxy.refuse])
def test_node_that_alone_loses_kafka_asks_a_node_that_has_not(
    running_nodes: NodeStack, lonely: LonelyNode, lose_kafka: Callable[[KafkaProxy], None]
) -> None:
    nodes, customer, name, node = running_nodes, lonely.customer, lonely.name, lonely.node
    before = nodes.balance(node.port, customer)
    assert (before.headers["Foldlake-Node"], before.headers["Foldlake-Role"]) == (name, "owner")

    lose_kafka(lonely.proxy)
    wait_until(lambda: lonely.own_lag_ms() > SESSION_TIMEOUT_S * 1000, "it is not current", 20)
    _assert_status_says_so(node)
    own = node.own_answer(lonely.path)
    assert (own.status_code, own.text) == (200, before.text), "it still answers when no other node does"
    assert own.headers["Foldlake-As-Of"] == node.own_answer(lonely.path).headers["Foldlake-As-Of"]

    nodes.put(customer, nodes.expected[customer] + Decimal("1.00"))
    nodes.writer.flush()

    after = f'{{"amount":{nodes.expected[customer]}}}'
    wait_until(lambda: nodes.balance(node.port, customer).text == after, "another node answers for it", 40)
    answer = nodes.balance(node.port, customer)
    assert answer.headers["Foldlake-Node"] != name
    own = node.own_answer(lonely.path)
    assert (own.status_code, own.headers[REASON_HEADER]) == (503, "not-ready"), (
        "not older than what it answered"
    )

    wait_until(lambda: nodes.get(node.port, "/readyz").status_code == 503, "it is too old", 20)
    assert "FOLDLAKE_NODE_MAX_AGE_S" in nodes.get(node.port, "/readyz").text
    assert all(nodes.is_ready(port) for port in nodes.ports), "the other nodes are ready"

    lonely.proxy.forward()
    wait_until(lambda: nodes.is_ready(node.port), "it is ready again")
    wait_until(lambda: nodes.wrong((node.port,)) == [], "its answers are exact")
