"""The stream driver has a slot for every task that never ends."""

import pytest

from include.settings import StreamSettings
from include.stream import slot_planning
from include.stream.slot_planning import (
    SlotClaim,
    SlotRank,
    flow_slots,
    queries_with_slots,
    shuffle_partitions,
)


@pytest.mark.parametrize(("partitions", "shuffle", "expected"), [(4, 0, 8), (4, 2, 8), (4, 6, 10), (1, 0, 2)])
def test_slots_of_a_query(partitions: int, shuffle: int, expected: int) -> None:
    stream = StreamSettings(shuffle_partitions=shuffle)
    assert flow_slots(stream, partitions, has_shuffle=True) == expected
    assert flow_slots(stream, partitions, has_shuffle=False) == partitions


def test_a_cluster_gets_no_more_slots_than_the_setting_says() -> None:
    stream = StreamSettings(master="spark://host:7077", shuffle_partitions=2)
    assert flow_slots(stream, 4, has_shuffle=True) == 6


def test_shuffle_partitions_follow_the_source_on_a_cluster_unless_set() -> None:
    cluster = "spark://host:7077"
    assert shuffle_partitions(StreamSettings(master=cluster), 6) == 6
    assert shuffle_partitions(StreamSettings(master=cluster, shuffle_partitions=3), 6) == 3


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 1), (3, 1), (4, 2), (16, 6)])
def test_shuffle_partitions_follow_the_cores_on_this_machine(
    cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_planning, "cores", lambda: cores)
    assert shuffle_partitions(StreamSettings(), 6) == expected
    assert shuffle_partitions(StreamSettings(shuffle_partitions=3), 6) == 3


SLOTS_PER_QUERY = 8
CLAIMS = {
    "v1": SlotClaim(SLOTS_PER_QUERY, SlotRank.PREVIOUS, -9),
    "v2": SlotClaim(SLOTS_PER_QUERY, SlotRank.PREVIOUS, -5),
    "v3": SlotClaim(SLOTS_PER_QUERY, SlotRank.SERVING),
    "v4": SlotClaim(SLOTS_PER_QUERY, SlotRank.CANDIDATE),
}


def test_live_version_has_slots_before_all_others() -> None:
    assert queries_with_slots(CLAIMS, (), SLOTS_PER_QUERY) == {"v3"}
    assert queries_with_slots(CLAIMS, (), 2 * SLOTS_PER_QUERY) == {"v3", "v4"}
    assert queries_with_slots(CLAIMS, (), 3 * SLOTS_PER_QUERY) == {"v3", "v4", "v1"}
    assert queries_with_slots(CLAIMS, (), 9 * SLOTS_PER_QUERY) == set(CLAIMS)


def test_running_query_keeps_its_slots() -> None:
    assert queries_with_slots(CLAIMS, ("v2", "v3"), 2 * SLOTS_PER_QUERY) == {"v2", "v3"}


def test_query_without_a_shuffle_fits_where_a_fold_does_not() -> None:
    claims = {**CLAIMS, "route": SlotClaim(SLOTS_PER_QUERY // 2, SlotRank.OTHER)}
    assert queries_with_slots(claims, ("v1", "v3"), 2 * SLOTS_PER_QUERY + SLOTS_PER_QUERY // 2) == {
        "v1",
        "v3",
        "route",
    }
