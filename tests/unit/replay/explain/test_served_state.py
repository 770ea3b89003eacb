"""A node's record is compared with the fold of the events up to its position."""

from dataclasses import replace

from include.position import Position
from include.replay.explain.served_state import ServedState
from include.versions.explanation import ExplainedEvent, ExplainedVersion, Explanation

TIME = "2026-01-02T03:04:05.000Z"


def an_event(number: int, state: str | None) -> ExplainedEvent:
    return ExplainedEvent(number, 3, number * 10, TIME, TIME, "FundsAdded", "{}", state)


FOUND = Explanation(
    read_model="balance",
    key="7",
    explained_at=TIME,
    shown=ExplainedVersion(1, "live", 1, "balance", {}, 2, '{"amount":7.00}'),
    events=(an_event(1, '{"amount":5.00}'), an_event(2, '{"amount":7.00}')),
    others=(),
    read_from={"3": 0},
    read_until={"3": 100},
    records_read=100,
)


def served(offset: int, event_count: int, amount: str) -> ServedState:
    return ServedState("node-1", Position(3, offset, event_count), f'{{"amount":{amount}}}')


def test_a_record_is_compared_as_of_its_own_position() -> None:
    assert served(10, 1, "5.00").difference(FOUND) == ""
    assert served(20, 2, "7.00").difference(FOUND) == ""


def test_another_state_or_number_of_events_is_a_difference() -> None:
    assert served(20, 2, "8.00").difference(FOUND) == (
        'node-1 serves {"amount":8.00} at partition=3, offset=20, event_count=2, and the events up to it give {"amount":7.00} '
        "at partition=3, offset=20, event_count=2."
    )
    assert "event_count=3" in served(20, 3, "7.00").difference(FOUND)
    ended = replace(FOUND, events=(an_event(2, None),))
    assert "give no record at" in served(20, 2, "7.00").difference(replace(ended, shown=FOUND.shown))


def test_a_record_at_a_position_without_an_event_is_a_difference() -> None:
    assert served(15, 2, "7.00").difference(FOUND).endswith("where the log has no event of this key.")


def test_a_position_that_is_not_shown_or_not_read_is_not_compared() -> None:
    hidden = replace(FOUND, shown=replace(FOUND.shown, event_count=1_000))

    assert served(15, 2, "7.00").difference(hidden) == ""
    assert served(500, 9, "7.00").difference(FOUND) == ""
