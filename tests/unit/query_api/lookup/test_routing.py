"""A key's partition, its standbys and the order of the nodes to try are the same on every node."""

from query_api.lookup.routing import candidates, partition_of, standby_table, standbys_of

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


def test_owner_is_tried_first_then_standbys_then_other_nodes() -> None:
    assert candidates("b", ("c",), ["a", "b", "c", "d"]) == ("b", "c", "a", "d")
    assert candidates(None, ("c",), ["a", "c"]) == ("c", "a")
