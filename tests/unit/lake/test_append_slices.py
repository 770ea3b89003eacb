"""The slices in which the topic of an event table is read."""

import pytest

from include.position import Offsets
from spark_jobs.event_tables import slice_end


@pytest.mark.parametrize(
    ("offsets", "ends", "expected"),
    [
        ({0: 0, 1: 0}, {0: 100, 1: 100}, {0: 5, 1: 5}),
        # What a partition does not have, the others may use in the next slice.
        ({0: 99, 1: 0}, {0: 100, 1: 100}, {0: 100, 1: 5}),
        ({0: 100, 1: 0}, {0: 100, 1: 100}, {0: 100, 1: 10}),
        ({0: 100}, {0: 100, 1: 3}, {0: 100, 1: 3}),
        ({0: 100}, {0: 100}, {0: 100}),
    ],
)
def test_a_slice_is_shared_by_the_partitions_with_records_left(
    offsets: dict[int, int], ends: dict[int, int], expected: dict[int, int]
) -> None:
    assert slice_end(Offsets(offsets), Offsets(ends), 10) == expected


def test_a_slice_has_at_least_one_record_of_each_partition() -> None:
    ends = Offsets(dict.fromkeys(range(20), 7))

    assert slice_end(Offsets(), ends, 10) == dict.fromkeys(range(20), 1)
