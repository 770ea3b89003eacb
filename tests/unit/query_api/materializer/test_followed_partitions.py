"""A partition's end is confirmed when the position has reached an end that was read from Kafka, as of the time of that read.

Records that are repeated after a key was removed are recognized, within a bounded memory.
"""

from dataclasses import replace

import pytest

from include.boot_clock import Moment
from include.position import Position
from query_api.materializer import followed_partitions
from query_api.materializer.followed_partitions import FollowedPartition, RemovedKeys
from query_api.store.base import ChangelogPosition


def at(boot_s: float) -> Moment:
    """Return a moment; the wall clock is set back by 500 s at 150 s."""
    return Moment(boot_s, boot_s if boot_s < 150.0 else boot_s - 500.0)


def partition_at(next_offset: int) -> FollowedPartition:
    return FollowedPartition(ChangelogPosition(next_offset, 0.0), is_ready=True, confirmed_at=at(100.0))


def read_up_to(partition: FollowedPartition, next_offset: int) -> float:
    """Advance the position, and return when the end was last confirmed, by the boot clock."""
    partition.position = replace(partition.position, next_offset=next_offset)
    return partition.state(0, next_offset).confirmed.boot_s


def test_end_that_the_position_has_reached_is_confirmed_at_once() -> None:
    partition = partition_at(5)

    partition.observe_end(5, at(200.0))

    state = partition.state(0, 5)
    assert (state.confirmed_boot_s, state.as_of_boot_s) == (200.0, 200.0)
    assert (state.confirmed_at, state.as_of) == (-300.0, -300.0), "what the wall clock showed"


def test_end_that_is_ahead_is_confirmed_when_it_is_reached_as_of_its_read() -> None:
    partition = partition_at(5)

    partition.observe_end(7, at(200.0))

    assert read_up_to(partition, 6) == 100.0
    assert read_up_to(partition, 7) == 200.0


def test_under_continuous_writes_the_first_end_that_is_ahead_counts() -> None:
    partition = partition_at(5)

    partition.observe_end(7, at(200.0))
    partition.observe_end(9, at(201.0))

    assert read_up_to(partition, 8) == 200.0
    partition.observe_end(9, at(202.0))
    assert read_up_to(partition, 9) == 202.0


def test_an_end_that_was_read_earlier_does_not_make_the_answer_older() -> None:
    partition = partition_at(5)

    partition.observe_end(5, at(200.0))
    partition.observe_end(5, at(150.0))

    assert partition.state(0, 5).confirmed == at(200.0)


def test_partition_is_ready_at_the_end_that_was_known_first() -> None:
    partition = FollowedPartition.from_beginning()

    assert not partition.became_ready(-1, is_at_end=False)
    assert not partition.became_ready(3, is_at_end=False)
    partition.position = replace(partition.position, next_offset=3)

    assert partition.became_ready(8, is_at_end=False)
    assert not partition.became_ready(8, is_at_end=False), "it is ready already"


def test_an_event_arrives_once_and_only_if_it_is_new_in_a_ready_partition() -> None:
    partition = partition_at(5)
    folded = partition.position.folded.with_event(Position(0, 40))

    partition.advance(replace(partition.position, next_offset=6, folded=folded), Position(0, 40))
    partition.advance(replace(partition.position, next_offset=7, folded=folded), Position(0, 41))
    first, second = partition.take_arrival(), partition.take_arrival()

    assert first is not None
    assert (first.position.offset, second) == (40, None)

    partition.advance(replace(partition.position, next_offset=8, folded=folded), Position(0, 39))
    assert partition.take_arrival() is None, "a record that was repeated after a crash"

    partition.is_ready = False
    partition.advance(replace(partition.position, next_offset=9, folded=folded), Position(0, 50))
    assert partition.take_arrival() is None, "an old record, loaded again"


def test_records_up_to_the_removal_are_outdated() -> None:
    removed = RemovedKeys()
    removed.add(b"a", 5)
    assert removed.is_outdated(b"a", 5)
    assert removed.is_outdated(b"a", 1)
    assert not removed.is_outdated(b"a", 6)
    assert not removed.is_outdated(b"b", 0)


def test_a_repeated_removal_forgets_nothing() -> None:
    removed = RemovedKeys()
    removed.add(b"a", 5)
    removed.add(b"a", 3)
    assert removed.is_outdated(b"a", 5)


def test_the_oldest_removals_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_partitions, "MAX_KEYS", 2)
    removed = RemovedKeys()
    for key in (b"a", b"b", b"c"):
        removed.add(key, 1)
    assert [removed.is_outdated(key, 1) for key in (b"a", b"b", b"c")] == [False, True, True]


def test_a_removal_is_applied_each_time_and_what_it_removed_is_not() -> None:
    removed = RemovedKeys()
    assert not removed.is_repetition(b"a", 5, is_removal=True)
    assert removed.is_repetition(b"a", 4, is_removal=False)
    assert not removed.is_repetition(b"a", 5, is_removal=True)
    assert not removed.is_repetition(b"a", 6, is_removal=False)
