"""Nodes with a partitioned read model give the same answers, each key's from its owner, and a quality check reads both copies."""

from types import SimpleNamespace

from include.settings import Placement
from tests.integration.placements.two_nodes import TwoNodes, check_replicas, check_same_answers
from tests.support.node_stack import NodeStack


def test_every_node_gives_the_same_answers_and_a_quality_check_reads_every_copy_once(
    nodes: NodeStack,
) -> None:
    second = SimpleNamespace(port=nodes.ports[1], url=f"http://127.0.0.1:{nodes.ports[1]}")
    placed = TwoNodes(nodes, second, Placement.PARTITIONED)  # type: ignore[arg-type]  # the checks use no more of a node

    check_same_answers(placed)
    placed.wait_until_exact()
    check_replicas(placed)
