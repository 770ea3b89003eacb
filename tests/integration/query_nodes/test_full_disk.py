"""A node whose disk is full keeps its store, and is exact again by itself once there is space."""

import signal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pytest

from include.nodes.peers import LAG_HEADER
from tests.support.faults.small_disk import SmallDisk, small_disk
from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.repetition import repeated
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

NAME = "node-6"
SESSION_TIMEOUT_S = 6
# Far more than fits into the unused pages of the store.
FILLERS = [f"filler {number}" for number in range(20_000)]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mb=48) as mounted:
        yield mounted


@pytest.fixture
def node(nodes: NodeStack, disk: SmallDisk) -> Iterator[ExtraNode]:
    """A third node, whose store is alone on a small disk."""
    (port,) = free_ports(1)
    extra = ExtraNode(nodes.settings, NAME, port, node_store_dir=disk.path / NAME)
    try:
        wait_until(lambda: nodes.is_settled(port), "it owns a partition")
        yield extra
    finally:
        extra.kill()
    wait_until(nodes.is_settled, "its partitions are owned by others")
    for key in FILLERS:
        nodes.writer.write_raw(key.encode(), None)
    nodes.writer.flush()
    wait_until(
        lambda: {stored(nodes, port) for port in nodes.ports} == {len(nodes.expected)}, "they are gone"
    )


def stored(nodes: NodeStack, port: int) -> int:
    """Return the number of records in a node's store."""
    pages = (
        nodes.get(port, f"/api/read-models/balance/records?partition={partition}&limit=1").json()
        for partition in range(nodes.settings.topics.partitions)
    )
    return sum(page["total"] for page in pages)


def test_node_with_a_full_disk_keeps_its_store_and_is_exact_again_when_there_is_space(
    nodes: NodeStack, node: ExtraNode, disk: SmallDisk
) -> None:
    customer = nodes.owned_customer(node.port)
    path = f"/api/customers.getBalance?customerId={quote(customer, safe='')}"
    before = node.own_answer(path).text
    store = disk.path / NAME / "balance.v1" / "data.mdb"
    inode = store.stat().st_ino

    disk.fill()
    # A supervisor would restart what ends.
    with repeated(node.revive, pause_s=0.5):
        for key in FILLERS:
            nodes.writer.write(key, Decimal("1.00"))
        nodes.put(customer, nodes.expected[customer] + Decimal("1.00"))
        nodes.writer.flush()

        wait_until(lambda: "free space on its disk" in nodes.get(node.port, "/readyz").text, "it says so", 60)
        own = node.own_answer(path)
        assert (own.status_code, own.text) == (200, before), "it keeps serving"
        wait_until(
            lambda: int(node.own_answer(path).headers[LAG_HEADER]) > SESSION_TIMEOUT_S * 1000,
            "its answer is not current",
            30,
        )
        wait_until(lambda: nodes.wrong((node.port,)) == [], "it asks nodes that are current", 60)
        assert node.starts == {"materializer": 1, "server": 1}, "nothing has ended"

        for part, number in (
            ("server", signal.SIGKILL),
            ("materializer", signal.SIGTERM),
            ("materializer", signal.SIGKILL),
        ):
            node.restart(part, number)
            wait_until(lambda: nodes.get(node.port, "/healthz").status_code == 200, "it is up", 60)
            wait_until(lambda: nodes.wrong((node.port,)) == [], "all answers are exact", 60)
    starts = dict(node.starts)

    disk.free()

    wait_until(lambda: nodes.is_ready(node.port), "it is ready")
    wait_until(lambda: "free space" not in nodes.get(node.port, "/readyz").text, "it can write")
    wait_until(lambda: nodes.wrong((node.port,)) == [], "all answers are exact")
    wait_until(
        lambda: node.own_answer(path).text == f'{{"amount":{nodes.expected[customer]}}}', "its own too"
    )
    assert store.stat().st_ino == inode, "the store was kept"
    assert node.starts == starts
