"""A node that is started again at another address within its session is found there."""

from pathlib import Path

from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until


def test_node_that_is_started_again_at_another_port_is_found_there(nodes: NodeStack) -> None:
    first_port, second_port = free_ports(2)
    name = f"moving-{first_port}"
    first = ExtraNode(nodes.settings, name, first_port)
    wait_until(lambda: nodes.is_settled(first_port), "it owns a partition")
    first.kill()

    # The group still has its session, and would keep the address of a member that joins again under its name.
    second = ExtraNode(nodes.settings, name, second_port)
    try:
        wait_until(lambda: nodes.is_settled(second_port), "it owns a partition at its new address")
        customer = nodes.owned_customer(second_port)
        answer = nodes.balance(nodes.ports[0], customer)
        assert (answer.status_code, answer.headers["Foldlake-Node"]) == (200, name)
    finally:
        second.kill()
    wait_until(nodes.is_settled, "its partitions are owned by others")


def test_second_node_of_the_same_name_ends_and_says_why(nodes: NodeStack, tmp_path: Path) -> None:
    first_port, second_port = free_ports(2)
    name = f"twin-{first_port}"
    first = ExtraNode(nodes.settings, name, first_port)
    try:
        wait_until(lambda: nodes.is_settled(first_port), "it owns a partition")

        # On another machine: with a home, and so a store, of its own.
        second = ExtraNode(nodes.settings.changed(home=tmp_path), name, second_port)
        try:
            wait_until(lambda: second.has_ended("materializer"), "its materializer ends")
            assert f"Another node has the name {name}" in second.log()
            assert "FOLDLAKE_NODE_NAME" in second.log()
        finally:
            second.kill()
        assert nodes.is_settled(first_port), "the first node keeps its partitions"
    finally:
        first.kill()
    wait_until(nodes.is_settled, "its partitions are owned by others")
