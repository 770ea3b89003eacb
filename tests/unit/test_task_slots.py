"""The stream driver has a slot for every task that never ends."""

import pytest

from include.settings import Settings
from include.task_slots import shuffle_partitions, task_slots


@pytest.mark.parametrize(
    ("partitions", "shuffle", "spare", "read_models", "expected"),
    [(4, 0, 2, 1, 28), (4, 0, 0, 1, 12), (4, 2, 0, 1, 10), (1, 0, 0, 1, 3), (12, 0, 1, 2, 96)],
)
def test_slots(partitions: int, shuffle: int, spare: int, read_models: int, expected: int) -> None:
    settings = Settings(partitions=partitions, stream_shuffle_partitions=shuffle, stream_spare_queries=spare)
    assert task_slots(settings, read_models) == expected


def test_shuffle_partitions_follow_the_source_unless_set() -> None:
    assert shuffle_partitions(Settings(partitions=6, stream_shuffle_partitions=0)) == 6
    assert shuffle_partitions(Settings(partitions=6, stream_shuffle_partitions=3)) == 3
