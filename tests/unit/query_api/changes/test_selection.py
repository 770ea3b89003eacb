"""What a client is told about a change, by what it has selected and where the item was before."""

from datetime import UTC, datetime

import pytest

from include.declarations.api import Location
from include.kafka.state_record import StateRecord
from include.position import Position
from query_api.changes.key_change import ChangeEvent, ChangeKind, Selection
from query_api.changes.key_history import KeyState, Point
from query_api.lookup.bounding_box import Area, BoundingBox

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
