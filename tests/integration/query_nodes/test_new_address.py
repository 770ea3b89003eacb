"""A name belongs to one node at a time, which is found at another address when it starts there within its session."""

from pathlib import Path

from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until


def test_second_node_of_a_name_ends_and_the_first_one_is_found_at_a_new_address(
    nodes: NodeStack, tmp_path: Path
) -> None:
    first_port, second_port, new_port = free_ports(3)
    name = f"moving-{first_port}"
    first = ExtraNode(nodes.settings, name, first_port)
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
    first.kill()

    # The group still has its session, and would keep the address of a member that joins again under its name.
    moved = ExtraNode(nodes.settings, name, new_port)
    try:
        wait_until(lambda: nodes.is_settled(new_port), "it owns a partition at its new address")
        customer = nodes.owned_customer(new_port)
        answer = nodes.balance(nodes.ports[0], customer)
        assert (answer.status_code, answer.headers["Foldlake-Node"]) == (200, name)
    finally:
        moved.kill()
    wait_until(nodes.is_settled, "its partitions are owned by others")
