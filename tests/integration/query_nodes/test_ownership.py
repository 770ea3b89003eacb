"""Lookups succeed while nodes join, leave and are killed."""

from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until


def test_lookups_succeed_while_an_owner_is_killed(nodes: NodeStack) -> None:
    other = nodes.ports[1]

    with nodes.continuous_lookups((other,)) as failures:
        nodes.kill("node-1-materializer", "node-1-http")
        wait_until(lambda: nodes.is_ready(nodes.ports[0]), "node-1 is back")

    assert failures == []
    nodes.wait_until_exact()


def test_lookups_succeed_while_a_node_joins_dies_and_its_partitions_move(nodes: NodeStack) -> None:
    (port,) = free_ports(1)

    with nodes.continuous_lookups() as failures:
        joined = ExtraNode(nodes.settings, "node-3", port)
        try:
            wait_until(lambda: joined.url in _owners(nodes), "node-3 owns a partition")
            wait_until(lambda: nodes.is_ready(port), "node-3 is ready")
            assert nodes.wrong((port,)) == [], "the new node answers for all keys"
        finally:
            joined.kill()
        wait_until(lambda: joined.url not in _owners(nodes), "its partitions are owned by others")

    assert failures == []
    nodes.wait_until_exact()


def test_lookups_succeed_while_a_node_joins_and_leaves(nodes: NodeStack) -> None:
    (port,) = free_ports(1)

    with nodes.continuous_lookups() as failures:
        joined = ExtraNode(nodes.settings, "node-4", port)
        try:
            wait_until(lambda: joined.url in _owners(nodes), "node-4 owns a partition")
            wait_until(lambda: nodes.is_ready(port), "node-4 is ready")
        finally:
            joined.stop()
        wait_until(lambda: joined.url not in _owners(nodes), "its partitions are owned by others")

    assert failures == []


def _owners(nodes: NodeStack) -> set[str]:
    return {report["owner"] for report in nodes.get(nodes.ports[0], "/api/partitions").json()}
