"""The changes in memory: a stream reads each once, from its own position, or learns that it is too slow; positions as text."""

import threading

import pytest

from query_api.changes.key_change import ChangeEvent, KeyState
from query_api.changes.recent_changes import (
    MAX_BYTES,
    READ_BYTES,
    READ_CHANGES,
    InvalidPositionError,
    RecentChanges,
    StreamPosition,
    StreamTooSlowError,
)


def append(recent: RecentChanges, partition: int, count: int = 1, value_bytes: int = 10) -> None:
    """Append `count` changes of a partition as one batch."""
    _, end = recent.end()
    after = list(end)
    changes = []
    for _ in range(count):
        changes.append(
            ChangeEvent(
                partition, after[partition], b"k", None, 1, None, KeyState(1, is_removed=True, point=None)
            )
        )
        after[partition] += 1
    recent.append(tuple(changes), (b"id",) * count, tuple(after), value_bytes)


def test_a_stream_reads_what_follows_its_position() -> None:
    recent = RecentChanges((10, 20))
    for partition in (0, 1, 1, 0):
        append(recent, partition)

    assert recent.end() == (4, (12, 22))
    assert recent.first_after((10, 20)) == 0
    assert recent.first_after((11, 20)) == 1
    assert recent.first_after((12, 21)) == 2
    assert recent.first_after((12, 22)) == 4
    assert recent.first_after((99, 99)) == 4, "another process has read further"
    assert [batch.number for batch in recent.read(2, 0)] == [2, 3]
    assert recent.read(4, 0) == []


def test_changes_before_the_beginning_are_not_in_memory() -> None:
    assert RecentChanges((10, 20)).first_after((9, 25)) is None


def test_the_oldest_batches_are_removed_when_there_are_too_many_changes() -> None:
    recent = RecentChanges((0,), max_changes=10)
    for _ in range(6):
        append(recent, 0, count=3)

    assert recent.start == (9,)
    assert recent.first_after((8,)) is None
    assert recent.first_after((9,)) == 3
    with pytest.raises(StreamTooSlowError):
        recent.read(2, 0)


def test_the_oldest_batches_are_removed_when_they_are_too_large() -> None:
    recent = RecentChanges((0,))
    for _ in range(3):
        append(recent, 0, value_bytes=MAX_BYTES // 2)

    assert recent.start == (1,)


def test_one_batch_stays_in_memory_however_large() -> None:
    recent = RecentChanges((0,), max_changes=1)
    append(recent, 0, count=5)

    assert len(recent.read(0, 0)[0].changes) == 5


def test_a_stream_reads_a_limited_number_of_changes_at_a_time() -> None:
    recent = RecentChanges((0,))
    for _ in range(5):
        append(recent, 0, count=READ_CHANGES - 1)
    append(recent, 0, value_bytes=READ_BYTES)
    append(recent, 0)

    assert [batch.number for batch in recent.read(0, 0)] == [0, 1]
    assert [batch.number for batch in recent.read(5, 0)] == [5]


def test_batches_without_changes_do_not_accumulate() -> None:
    recent = RecentChanges((0,), max_changes=10)
    for _ in range(50):
        append(recent, 0, count=0)

    assert len(recent.read(recent.first_after(recent.start) or 40, 0)) <= 10


def test_an_appended_batch_and_the_end_wake_a_waiting_stream() -> None:
    recent = RecentChanges((0,))
    woken: list[int] = []

    def wait() -> None:
        woken.append(len(recent.read(0, 60)))
        woken.append(len(recent.read(1, 60)))

    waiting = threading.Thread(target=wait)
    waiting.start()
    append(recent, 0)
    recent.wake()
    recent.close()
    waiting.join(30)

    assert woken == [1, 0]


@pytest.mark.parametrize(
    "position", [StreamPosition(1, 1790000000, (0,)), StreamPosition(12, 0, (5, 0, 2**63 - 1, 7))]
)
def test_a_position_is_read_back_from_its_text(position: StreamPosition) -> None:
    assert StreamPosition.parse(position.text) == position


def test_a_position_is_readable() -> None:
    assert StreamPosition(1, 1790000000, (12, 0, 7)).text == "1.1790000000.12-0-7"


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.", "1.2.3-", "1.2.-3", "a.2.3", "1.2.3 ", "1.2.3\n", "1.2.³"]
)
def test_another_text_is_no_position(text: str) -> None:
    with pytest.raises(InvalidPositionError):
        StreamPosition.parse(text)
