"""A node without Kafka: the keys that it knows go on, also after a restart; a revocation takes effect once Kafka is back."""

import signal
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from include.settings import Settings
from tests.integration.security.conftest import SecuredNodes
from tests.support.faults.kafka_proxy import KafkaProxy
from tests.support.node_stack import ExtraNode
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

# Answered without Kafka: 404 for a caller whom the node knows, 401 for any other.
PATH = "/unknown"


@pytest.fixture
def lonely(secured: SecuredNodes, servers: Settings) -> Iterator[tuple[ExtraNode, KafkaProxy]]:
    """A third node, and the proxy through which it reaches Kafka."""
    port, proxy_port = free_ports(2)
    proxy = KafkaProxy(servers.kafka.port, proxy_port)
    node = ExtraNode(secured.settings, f"lonely-{port}", port, kafka_bootstrap=proxy.bootstrap_servers)
    try:
        yield node, proxy
    finally:
        proxy.forward()
        node.stop()


def status(secured: SecuredNodes, node: ExtraNode, path: str, secret: str = "") -> int:
    """Return the status of an answer; 0 while the node's server is down."""
    try:
        return secured.get(node.port, path, secret).status_code
    except httpx.HTTPError:
        return 0


def test_known_keys_go_on_while_kafka_is_away(
    secured: SecuredNodes, lonely: tuple[ExtraNode, KafkaProxy]
) -> None:
    node, proxy = lonely
    secret = secured.key("outage")
    wait_until(lambda: status(secured, node, "/readyz") == 200, "the node is ready", 60)
    wait_until(lambda: status(secured, node, PATH, secret) == 404, "it knows the key", 10)

    proxy.refuse()
    for part in ("materializer", "server"):
        node.restart(part, signal.SIGTERM)

    wait_until(lambda: status(secured, node, PATH, secret) == 404, "it knows the key after a restart", 60)
    assert status(secured, node, PATH, f"{secret}x") == 401
    wait_until(
        lambda: "API keys" in secured.get(node.port, "/readyz").text,
        "it says that it has not read the keys",
        30,
    )
    secured.keys.revoke("outage", datetime.now(UTC))
    wait_until(lambda: secured.statuses(secret, PATH) == {401}, "the other nodes refuse the key", 5)
    assert status(secured, node, PATH, secret) == 404

    proxy.forward()

    wait_until(lambda: status(secured, node, PATH, secret) == 401, "it refuses the key", 60)
    wait_until(lambda: status(secured, node, "/readyz") == 200, "it is ready again", 60)
