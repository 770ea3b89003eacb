"""The id of an event names version, time, and the offset of each partition."""

import pytest

from query_api.changes.stream_position import InvalidPositionError, StreamPosition


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
