"""Lookups succeed while nodes join, leave and are killed; nodes of the previous commit and of this one work beside each other."""

import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from include.settings import CHECKOUT
from tests.support.listing.whole_listing import list_all
from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.repetition import repeated
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until


def test_lookups_succeed_while_an_owner_is_killed(nodes: NodeStack) -> None:
    other = nodes.ports[1]

    with nodes.continuous_lookups((other,)) as failures:
        nodes.kill("node-1-materializer", "node-1-http")
        wait_until(lambda: nodes.is_ready(nodes.ports[0]), "node-1 is back")

    assert failures == []
    nodes.wait_until_exact()


def test_lookups_and_listings_are_complete_while_a_node_joins_dies_and_its_partitions_move(
    nodes: NodeStack,
) -> None:
    listings: list[list[str]] = []

    def list_keys() -> None:
        listings.append(sorted(record["key"] for record in list_all(nodes, nodes.ports, limit=20)))

    with nodes.continuous_lookups() as failures, repeated(list_keys), joined(nodes, "node-3") as node:
        assert nodes.wrong((node.port,)) == [], "the new node answers for all keys"
        wait_until(lambda: len(listings) > 2, "some listings are complete")
        node.kill()

    assert failures == []
    assert all(keys == sorted(nodes.expected) for keys in listings)
    nodes.wait_until_exact()


def test_lookups_succeed_while_a_node_joins_and_leaves(nodes: NodeStack) -> None:
    with nodes.continuous_lookups() as failures, joined(nodes, "node-4"):
        pass

    assert failures == []


def test_rolling_upgrade_a_node_of_the_previous_commit_works_beside_this_one(
    nodes: NodeStack, previous_commit: Path
) -> None:
    with nodes.continuous_lookups() as failures, joined(nodes, "previous", previous_commit) as older:
        assert nodes.wrong((older.port,)) == [], "it answers for all keys, also those of the newer nodes"

    assert failures == []


@pytest.fixture
def previous_commit(tmp_path: Path) -> Path:
    """A directory with the code of the previous commit."""
    archive = subprocess.run(["git", "archive", "HEAD^"], cwd=CHECKOUT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip("this clone has no previous commit")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(tmp_path, filter="data")
    return tmp_path


@contextmanager
def joined(nodes: NodeStack, name: str, checkout: Path = CHECKOUT) -> Iterator[ExtraNode]:
    """Run a further node, which owns a partition and is ready; at the end it stops, and its partitions move to others."""
    (port,) = free_ports(1)
    node = ExtraNode(nodes.settings, name, port, checkout)
    try:
        wait_until(lambda: node.url in _owners(nodes), f"{name} owns a partition")
        wait_until(lambda: nodes.is_ready(port), f"{name} is ready")
        yield node
    finally:
        node.stop()
    wait_until(lambda: node.url not in _owners(nodes), "its partitions are owned by others")


def _owners(nodes: NodeStack) -> set[str]:
    return {report["owner"] for report in nodes.get(nodes.ports[0], "/api/partitions").json()}
