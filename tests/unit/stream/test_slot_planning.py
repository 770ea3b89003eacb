"""The stream driver has a slot for every task that never ends."""

import pytest

from include.settings import Settings
from include.stream.slot_planning import (
    SlotClaim,
    SlotRank,
    queries_with_slots,
    shuffle_partitions,
    task_slots,
)


@pytest.mark.parametrize(
    ("partitions", "shuffle", "spare", "read_models", "expected"),
    [(4, 0, 2, 1, 28), (4, 0, 0, 1, 12), (4, 2, 0, 1, 10), (1, 0, 0, 1, 3), (12, 0, 1, 2, 96)],
)
def test_slots(partitions: int, shuffle: int, spare: int, read_models: int, expected: int) -> None:
    settings = Settings.of(
        partitions=partitions, stream_shuffle_partitions=shuffle, stream_spare_queries=spare
    )
    assert task_slots(settings, read_models) == expected


def test_shuffle_partitions_follow_the_source_unless_set() -> None:
    assert shuffle_partitions(Settings.of(partitions=6, stream_shuffle_partitions=0)) == 6
    assert shuffle_partitions(Settings.of(partitions=6, stream_shuffle_partitions=3)) == 3


EACH = 8
KEPT = {
    "v1": SlotClaim(EACH, SlotRank.PREVIOUS, -9),
    "v2": SlotClaim(EACH, SlotRank.PREVIOUS, -5),
    "v3": SlotClaim(EACH, SlotRank.SERVING),
    "v4": SlotClaim(EACH, SlotRank.CANDIDATE),
}


def test_live_version_has_slots_before_all_others() -> None:
    assert queries_with_slots(KEPT, (), EACH) == {"v3"}
    assert queries_with_slots(KEPT, (), 2 * EACH) == {"v3", "v4"}
    assert queries_with_slots(KEPT, (), 3 * EACH) == {"v3", "v4", "v1"}
    assert queries_with_slots(KEPT, (), 9 * EACH) == set(KEPT)


def test_query_that_runs_keeps_its_slots() -> None:
    assert queries_with_slots(KEPT, ("v2", "v3"), 2 * EACH) == {"v2", "v3"}


def test_query_without_a_shuffle_fits_where_a_fold_does_not() -> None:
    claims = {**KEPT, "route": SlotClaim(EACH // 2, SlotRank.OTHER)}
    assert queries_with_slots(claims, ("v1", "v3"), 2 * EACH + EACH // 2) == {"v1", "v3", "route"}
