"""A key's partition, its standbys and the order of the nodes to try are the same on every node."""

import pytest

from include.nodes.peers import HOP_ANY, HOP_CURRENT, HOP_OWNER
from query_api.cluster.node_state import ModelState, NodeState
from query_api.lookup.routing import KeyLocation, attempts, partition_of, standby_table, standbys_of

NODES = [f"http://node-{number}" for number in range(5)]


def test_partition_matches_kafkas_java_client() -> None:
    # From Kafka's own tests: UtilsTest.testMurmur2, 21 -> -973932308.
    assert partition_of(b"21", 1000) == (-973932308 & 0x7FFFFFFF) % 1000


def test_standbys_do_not_depend_on_the_order_of_nodes() -> None:
    assert standbys_of("t", 3, NODES[0], NODES, 2) == standbys_of("t", 3, NODES[0], reversed(NODES), 2)


def test_owner_is_never_its_own_standby() -> None:
    table = standby_table("t", 64, {p: NODES[p % 5] for p in range(64)}, NODES, 4)

    assert all(NODES[p % 5] not in standbys and len(standbys) == 4 for p, standbys in table.items())


def test_leaving_node_moves_only_its_own_standby_partitions() -> None:
    before = standby_table("t", 64, {}, NODES, 1)
    after = standby_table("t", 64, {}, NODES[1:], 1)

    assert all(after[p] == before[p] for p in before if before[p] != (NODES[0],))


def test_single_node_has_no_standbys() -> None:
    assert standbys_of("t", 0, NODES[0], [NODES[0]], 1) == ()


def location(here: str, owner: str | None, standbys: tuple[str, ...]) -> KeyLocation:
    """Return the location of a partition of a read model on nodes a to d."""
    owned = frozenset({0}) if owner == here else frozenset[int]()
    model = ModelState("balance", "balance", 1, 1, 1, owned=owned, standbys={0: standbys})
    if owner is not None:
        model.owners[0] = owner
    return KeyLocation(NodeState("node", here, nodes=dict.fromkeys("abcd", "")), model, 1, b"k", 0, None)


def test_owner_is_tried_first_then_standbys_then_other_nodes() -> None:
    assert list(attempts(location("d", "b", ("c",)))) == [
        ("b", HOP_OWNER),
        ("c", HOP_ANY),
        ("a", HOP_ANY),
        ("d", None),
    ]


def test_standbys_are_tried_first_while_a_partition_has_no_owner() -> None:
    assert [url for url, _ in attempts(location("b", None, ("c", "b")))] == ["c", "b", "a", "d"]


def test_owner_tries_its_own_store_first() -> None:
    assert list(attempts(location("b", "b", ("c",))))[:2] == [("b", None), ("c", HOP_ANY)]


@pytest.mark.parametrize("owner", ["b", "c"])
def test_node_that_is_not_current_tries_the_others_first_and_once_more_after_itself(owner: str) -> None:
    of_owner = HOP_OWNER if owner == "c" else HOP_ANY

    assert list(attempts(location("b", owner, ("c",)), is_current=False)) == [
        *((url, HOP_CURRENT) for url in "cad"),
        ("b", None),
        *(("c", of_owner), ("a", HOP_ANY), ("d", HOP_ANY)),
    ]
