"""The newest dead letter of a source partition is found behind records of other programs, within a bound."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from include.kafka import dead_letters
from include.kafka.dead_letters import FOREIGN, newest_dead_letter, read_dead_letters
from include.kafka.log_reading import log_consumer
from include.position import Position
from include.settings import Settings
from tests.support.stream_process import make_topics

PARTITION = 1
# Further back than the first and the second reading.
FOREIGN_RECORDS = 150


@pytest.fixture
def source_topic(stream_stack: Settings, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name).replace("_", "-")
    make_topics(stream_stack, name)
    return name


@pytest.fixture
def consumer(stream_stack: Settings) -> Iterator[Consumer]:
    found = log_consumer(stream_stack.kafka_connection)
    yield found
    found.close()


class DeadLetterTopic:
    """Appends to one partition of a dead-letter topic what the stream driver and other programs write."""

    def __init__(self, settings: Settings, source_topic: str) -> None:
        self._source_topic = source_topic
        self._producer = Producer(settings.kafka_connection.client_settings)

    def letter(self, offset: int, source_topic: str = "") -> None:
        """Append the dead letter of the record at an offset."""
        self.record(
            reason="null_key",
            source_topic=source_topic or self._source_topic,
            source_partition=str(PARTITION),
            source_offset=str(offset),
        )

    def record(self, **headers: str | bytes | None) -> None:
        """Append a record with these headers."""
        topic = f"{self._source_topic}.dead-letter"
        self._producer.produce(topic, b"value", partition=PARTITION, headers=dict(headers))

    def flush(self) -> None:
        """Wait until the broker has acknowledged every record."""
        assert self._producer.flush(30) == 0


def test_records_of_other_programs_are_looked_past(
    stream_stack: Settings, consumer: Consumer, source_topic: str
) -> None:
    topic = DeadLetterTopic(stream_stack, source_topic)
    assert newest_dead_letter(consumer, source_topic, PARTITION) is None
    for offset in (3, 7):
        topic.letter(offset)
    for _ in range(FOREIGN_RECORDS):
        topic.record()
    topic.record(reason="x", source_topic=source_topic, source_partition="1", source_offset="many")
    topic.record(source_offset="99")
    topic.letter(99, source_topic="another")
    topic.flush()

    assert newest_dead_letter(consumer, source_topic, PARTITION) == Position(PARTITION, 7, topic=source_topic)
    assert newest_dead_letter(consumer, source_topic, 0) is None
    found = read_dead_letters(stream_stack.kafka_connection, source_topic, limit=3)
    assert found is not None
    assert [letter.reason for letter in found.newest] == [FOREIGN, FOREIGN, "null_key"]


def test_the_search_is_bounded(
    stream_stack: Settings, consumer: Consumer, source_topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = DeadLetterTopic(stream_stack, source_topic)
    topic.letter(7)
    for _ in range(FOREIGN_RECORDS):
        topic.record()
    topic.flush()
    monkeypatch.setattr(dead_letters, "SEARCHED_RECORDS", FOREIGN_RECORDS)
    assert newest_dead_letter(consumer, source_topic, PARTITION) is None
    monkeypatch.setattr(dead_letters, "SEARCHED_RECORDS", FOREIGN_RECORDS + 1)
    assert newest_dead_letter(consumer, source_topic, PARTITION) == Position(PARTITION, 7, topic=source_topic)
