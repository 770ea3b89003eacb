"""Which records a version that folds another source topic appends to the consumers' topic."""

from collections.abc import Iterator
from typing import Any

import pytest

from include.kafka.origins import SourceEvent, WrittenRecords
from include.position import Offsets
from spark_jobs.routing import topic_switch
from spark_jobs.routing.topic_switch import (
    ConsumedEvents,
    NotRoutedError,
    TopicSwitch,
    consumed_events,
    emitted_offsets,
    lacking_offsets,
)
from spark_jobs.streaming.outputs.published_topic import TopicOwner

NO_CONSUMER: Any = None
CHANGE = TopicSwitch(
    version=2,
    live_since="2026-01-01T00:00:00+00:00",
    before="postings",
    after="postings.v2",
    routed={"balance": Offsets({0: 10})},
    ends=Offsets({0: 4, 1: 1}),
)


class Record:
    """A record that a route or an emission wrote."""

    def __init__(self, offset: int, topic: str, source: int, source_offset: int, writer: str = "r") -> None:
        self._offset = offset
        texts = (writer, topic, str(source), str(source_offset), "0")
        names = ("route", "source_topic", "source_partition", "source_offset", "source_index")
        self._headers = [(name, text.encode()) for name, text in zip(names, texts, strict=True)]

    def offset(self) -> int:
        """Return the offset."""
        return self._offset

    def headers(self) -> list[tuple[str, bytes]]:
        """Return the headers."""
        return self._headers


class Foreign(Record):
    """A record without headers."""

    def headers(self) -> list[tuple[str, bytes]]:
        """Return none."""
        return []


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[Record]]]:
    """The records of each partition of each topic."""
    found: dict[str, list[list[Record]]] = {}

    def read_tail(_consumer: object, topic: str, partition: int) -> Iterator[Record]:
        yield from found[topic][partition]

    monkeypatch.setattr(topic_switch, "read_tail", read_tail)
    return found


def original(offset: int, partition: int = 0, topic: str = "balance") -> SourceEvent:
    return SourceEvent(topic, partition, offset, 0)


def routed(*offsets: int) -> list[Record]:
    """Return routed records of these events of balance/0."""
    return [Record(number, "balance", 0, offset) for number, offset in enumerate(offsets)]


def test_consumers_lack_what_was_not_emitted_and_what_was_not_routed_yet() -> None:
    events = ConsumedEvents({"balance": Offsets({0: 10})})
    events.add(original(3), is_emitted=True)
    events.add(original(5), is_emitted=False)
    events.add(original(12), is_emitted=True)
    events.add(original(13), is_emitted=False)
    lacking = [offset for offset in range(16) if events.lacks(original(offset))]
    assert lacking == [5, 10, 11, 13, 14, 15], "4 was left out by the route, and 12 was emitted"


def test_consumers_lack_everything_of_a_source_that_was_not_routed() -> None:
    events = ConsumedEvents({"balance": Offsets({0: 10})})
    assert events.lacks(original(0, topic="other"))
    assert events.lacks(original(0, partition=1))


def test_a_source_that_is_no_longer_routed_was_routed_up_to_its_newest_event() -> None:
    events = ConsumedEvents({})
    events.add(original(3), is_emitted=True)
    events.add(original(7), is_emitted=False)
    events.add(original(9), is_emitted=True)
    assert [offset for offset in range(12) if events.lacks(original(offset))] == [7, 10, 11]


def test_only_records_below_the_end_are_compared(topics: dict[str, list[list[Record]]]) -> None:
    topics["postings.v2"] = [
        routed(2, 4, 5, 11, 12),
        [Record(0, "balance", 0, 3), Record(1, "balance", 0, 14)],
    ]
    events = ConsumedEvents(CHANGE.routed)
    for offset in (2, 3):
        events.add(original(offset), is_emitted=True)
    events.add(original(5), is_emitted=False)
    assert lacking_offsets(NO_CONSUMER, CHANGE, events) == {(0, 2), (0, 3)}


def test_what_was_emitted_is_told_by_the_note_and_by_the_consumers_topic(
    topics: dict[str, list[list[Record]]],
) -> None:
    topics["receipts"] = [
        [
            Record(0, "postings", 0, 1, "receipts"),
            Record(1, "postings", 0, 3, "receipts"),
            Record(2, "postings.v2", 0, 2, "receipts"),
            Record(3, "postings", 0, 4, "others"),
        ]
    ]
    completed = Offsets({0: 2})
    emitted = emitted_offsets(NO_CONSUMER, "receipts", 1, WrittenRecords("receipts", "postings"), completed)
    assert emitted == {(0, 3)}

    topics["postings"] = [routed(20, 21, 22, 23, 24)]
    events = consumed_events(NO_CONSUMER, CHANGE, 1, completed, emitted)
    assert [offset for offset in range(20, 26) if events.lacks(original(offset))] == [22, 24, 25]


def test_a_topic_that_is_not_routed_is_refused(topics: dict[str, list[list[Record]]]) -> None:
    topics["postings"] = [[*routed(1), Foreign(1, "", 0, 0)]]
    with pytest.raises(NotRoutedError, match="offset 1 of postings/0"):
        consumed_events(NO_CONSUMER, CHANGE, 1, Offsets(), set())


def test_a_writer_survives_its_file() -> None:
    for writer in (TopicOwner("postings"), TopicOwner("postings", CHANGE)):
        assert TopicOwner.from_json(writer.to_json()) == writer
    assert TopicOwner("postings", CHANGE).next_source_topic == "postings.v2"
