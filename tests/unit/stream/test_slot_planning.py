"""The stream driver has a slot for every task that never ends."""

import pytest

from include.settings import Settings
from include.stream.slot_planning import queries_with_slots, shuffle_partitions, task_slots
from include.versions.registry import Stage, Version


@pytest.mark.parametrize(
    ("partitions", "shuffle", "spare", "expected"),
    [
        ([4], 0, 2, 28),
        ([4], 0, 0, 12),
        ([4], 2, 0, 10),
        ([1], 0, 0, 3),
        ([12, 12], 0, 1, 96),
        ([1, 12], 0, 1, 63),
    ],
)
def test_slots(partitions: list[int], shuffle: int, spare: int, expected: int) -> None:
    settings = Settings.of(stream_shuffle_partitions=shuffle, stream_spare_queries=spare)
    assert task_slots(settings, partitions) == expected


def test_shuffle_partitions_follow_the_source_unless_set() -> None:
    assert shuffle_partitions(Settings.of(stream_shuffle_partitions=0), 6) == 6
    assert shuffle_partitions(Settings.of(stream_shuffle_partitions=3), 6) == 3


def version(number: int, stage: Stage, replaced_in: int = 0) -> Version:
    return Version(number, stage, 1, f"balance.v{number}.changelog", "", "", replaced_in=replaced_in)


KEPT = {
    "v1": version(1, Stage.PREVIOUS, replaced_in=9),
    "v2": version(2, Stage.PREVIOUS, replaced_in=5),
    "v3": version(3, Stage.LIVE),
    "v4": version(4, Stage.CANDIDATE),
}


def test_live_version_has_slots_before_all_others() -> None:
    assert queries_with_slots(KEPT, (), 1) == {"v3"}
    assert queries_with_slots(KEPT, (), 2) == {"v3", "v4"}
    assert queries_with_slots(KEPT, (), 3) == {"v3", "v4", "v1"}
    assert queries_with_slots(KEPT, (), 9) == set(KEPT)


def test_query_that_runs_keeps_its_slots() -> None:
    assert queries_with_slots(KEPT, ("v2", "v3"), 2) == {"v2", "v3"}
