"""Which records of a key are outdated, and which changes a client is told about."""

from datetime import UTC, datetime

import pytest

from include.declarations.api import Location
from include.kafka.state_record import StateRecord
from include.position import Position
from query_api.changes.key_change import ChangeEvent, ChangeKind, KeyHistory, KeyState, Point, Selection
from query_api.lookup.bounding_box import Area, BoundingBox


def with_state(event_count: int, *, is_removed: bool = False) -> KeyHistory:
    history = KeyHistory()
    history.set(b"k", KeyState(event_count, is_removed, None))
    return history


def test_a_record_with_a_lower_count_is_outdated() -> None:
    history = with_state(5)

    assert history.is_outdated_record(b"k", 4)
    assert not history.is_outdated_record(b"k", 5)
    assert not history.is_outdated_record(b"other", 1)


def test_after_a_removal_only_a_record_of_more_events_is_new() -> None:
    history = with_state(5, is_removed=True)

    assert history.is_outdated_record(b"k", 5)
    assert not history.is_outdated_record(b"k", 6)
    assert history.is_repeated_removal(b"k")
    assert not with_state(5).is_repeated_removal(b"k")


def test_the_key_that_did_not_change_for_the_longest_time_is_forgotten() -> None:
    history = KeyHistory(max_keys=2)
    for key in (b"a", b"b", b"a", b"c"):
        history.set(key, KeyState(1, is_removed=False, point=None))

    assert history.state(b"b") is None
    assert history.state(b"a") is not None
    assert history.state(b"c") is not None


INSIDE, OUTSIDE = (0.5, 0.5), (5.0, 5.0)
BOX = Selection(area=Area(Location("lat", "lon"), BoundingBox(0, 0, 1, 1)))
CHANGED, LEFT, REMOVED = ChangeKind.CHANGED, ChangeKind.LEFT, ChangeKind.REMOVED
UNKNOWN = "unknown"


def change(key: bytes, to: Point | None, before: Point | str | None = UNKNOWN) -> ChangeEvent:
    """Return a change of a key; `to` None: a removal. before: its location, None if it was removed."""
    record = None if to is None else StateRecord({}, Position(0, 2, 2), datetime.now(UTC))
    known = None if isinstance(before, str) else KeyState(1, before is None, before)
    return ChangeEvent(0, 7, key, record, 2, known, KeyState(2, to is None, to))


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        (Selection(), [CHANGED, CHANGED, REMOVED]),
        (Selection(key=b"a-1"), [CHANGED, None, None]),
        (Selection(prefix=b"a-"), [CHANGED, CHANGED, None]),
    ],
)
def test_keys_are_selected_one_by_one_or_by_prefix(
    selection: Selection, told: list[ChangeKind | None]
) -> None:
    changes = [change(b"a-1", INSIDE), change(b"a-2", OUTSIDE), change(b"b-1", None)]

    assert [selection.kind(one) for one in changes] == told


@pytest.mark.parametrize(
    ("to", "before", "told"),
    [
        (INSIDE, UNKNOWN, CHANGED),
        (INSIDE, OUTSIDE, CHANGED),
        (INSIDE, INSIDE, CHANGED),
        (OUTSIDE, INSIDE, LEFT),
        (OUTSIDE, OUTSIDE, None),
        (OUTSIDE, None, None),
        (OUTSIDE, UNKNOWN, LEFT),
        (None, INSIDE, REMOVED),
        (None, OUTSIDE, None),
        (None, UNKNOWN, REMOVED),
    ],
)
def test_a_box_is_told_of_what_is_in_it_and_of_what_was(
    to: Point | None, before: Point | str | None, told: ChangeKind | None
) -> None:
    assert BOX.kind(change(b"k", to, before)) is told


def test_a_box_and_a_prefix_both_hold() -> None:
    both = Selection(prefix=b"a-", area=BOX.area)

    assert both.kind(change(b"a-1", INSIDE)) is CHANGED
    assert both.kind(change(b"b-1", INSIDE)) is None
