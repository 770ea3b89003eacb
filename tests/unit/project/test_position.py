"""A position is formatted, parsed, merged and compared the same way everywhere."""

import json
from dataclasses import asdict, dataclass

import pytest

from include.position import POSITION_COLUMNS, Offsets, Position, parse_offset, position_text

HEADER = "partition=3, offset=39928, event_count=50"


def test_text_form_equals_the_header() -> None:
    position = Position(3, 39928, 50)

    assert str(position) == position_text(position.record_fields()) == HEADER


@pytest.mark.parametrize(
    "position",
    [Position(3, 39928, 50), Position(0, 0), Position(1, 7, topic="balance"), Position(1, 7, 2, "balance")],
    ids=str,
)
def test_text_form_round_trips(position: Position) -> None:
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize(
    "text",
    ["", "3", "partition=3", "partition=3, offset=-1", "partition=x, offset=1", f"{HEADER}, further=1"],
)
def test_invalid_text_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a position"):
        Position.parse(text)


@pytest.mark.parametrize("text", ["-1", "1.0", " 1", "1_0", "٣", "1" * 20, ""])
def test_an_offset_is_a_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="is not an offset"):
        parse_offset(text)


def test_a_record_contains_the_events_up_to_its_position() -> None:
    record = Position(3, 10, 4)

    assert record.covers(Position(3, 10))
    assert record.covers(Position(3, 9, topic="balance"))
    assert not record.covers(Position(3, 11))
    assert not record.covers(Position(2, 9))
    assert not Position(3, 10, topic="orders").covers(Position(3, 9, topic="balance"))


def test_merging_keeps_the_further_position_in_any_order() -> None:
    early, late = Position(3, 10, 4), Position(3, 12, 5)

    assert early.merge(late) == late.merge(early) == late
    assert early.merge(Position(3, 10, 4)) == early


def test_positions_of_different_partitions_cannot_be_merged() -> None:
    with pytest.raises(ValueError, match=r"partition=3, offset=10.*different partitions"):
        Position(3, 10).merge(Position(2, 10))


def test_position_fields_of_a_record_round_trip() -> None:
    fields = {"amount": 5, "event_count": 4, "source_partition": 3, "source_offset": 10, "occurred_on": 0}

    position = Position.take_from(fields, "balance")

    assert (position, fields) == (Position(3, 10, 4, "balance"), {"amount": 5, "occurred_on": 0})
    assert tuple(position.record_fields()) == POSITION_COLUMNS[:3]
    assert list(position.record_fields().values()) == [4, 3, 10]


def test_merged_offsets_never_decrease() -> None:
    read = Offsets({0: 40, 1: 2})

    assert read.merge({}) == {0: 40, 1: 2}
    assert read.merge({1: 3, 2: 7, 0: 39}) == {0: 40, 1: 3, 2: 7}
    assert read.with_event(Position(1, 2)) == {0: 40, 1: 3}
    assert read.with_event(Position(0, 5)) == read


def test_offsets_cover_all_lower_offsets() -> None:
    read = Offsets({0: 40, 1: 2})

    assert read.covers({0: 40, 1: 1, 2: 0})
    assert not read.covers({0: 41})
    assert not read.covers({2: 1})


def test_newest_records_and_next_offsets_are_converted_into_each_other() -> None:
    read = Offsets.of_newest({0: 39, 1: 0})

    assert read == {0: 40, 1: 1}
    assert read.newest() == {0: 39, 1: 0}


def test_events_between_two_offsets_are_counted() -> None:
    assert Offsets({0: 40, 1: 2}).events_until({0: 45, 1: 1, 2: 3}) == 8
    assert Offsets().events_until(Offsets.of_ends((4, 0, 2))) == 6


def test_offsets_have_a_stable_json_form() -> None:
    @dataclass(frozen=True)
    class Tag:
        complete_up_to: Offsets

    text = json.dumps(asdict(Tag(Offsets({0: 40, 1: 2}))))

    assert text == '{"complete_up_to": {"0": 40, "1": 2}}'
    assert Offsets.from_json(json.loads(text)["complete_up_to"]) == {0: 40, 1: 2}
    assert Offsets({0: 40}).for_spark("balance") == '{"balance": {"0": 40}}'


def test_a_removal_has_its_position_in_its_headers() -> None:
    headers = [("event_count", b"50"), ("source_partition", b"3"), ("source_offset", b"39928")]
    assert Position.of_removal(headers) == Position(3, 39928, 50)
    assert Position.of_removal(Position(3, 39928, 50).removal_headers()) == Position(3, 39928, 50)


@pytest.mark.parametrize(
    "headers",
    [
        None,
        [],
        [("event_count", b"50")],
        [("event_count", b"50"), ("source_partition", None), ("source_offset", b"x")],
    ],
    ids=str,
)
def test_a_tombstone_without_such_headers_has_no_position(
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    assert Position.of_removal(headers) is None
