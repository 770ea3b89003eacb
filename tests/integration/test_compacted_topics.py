"""The newest record of each key on a topic with one partition, reports that are published there, and the reader of changelogs."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer

from include.kafka.compacted_topics import (
    ChangelogReader,
    ReportPublisher,
    ReportTopic,
    changelog_consumer,
    newest_by_key,
)
from include.kafka.log_reading import log_consumer
from include.kafka.topics import admin_client, changelog, ensure_topics
from include.settings import Settings
from tests.support.waiting import wait_until

READ_TIMEOUT_S = 30.0


@pytest.fixture
def topic(settings: Settings) -> str:
    name = f"reports-{uuid.uuid4().hex}"
    ensure_topics(admin_client(settings.kafka_connection), [changelog(name, 1)], 1)
    return name


@pytest.fixture
def consumer(settings: Settings) -> Consumer:
    return log_consumer(settings.kafka_connection)


def test_newest_record_of_each_key_is_read_and_deleted_keys_are_left_out(
    settings: Settings, topic: str, consumer: Consumer
) -> None:
    kafka = settings.kafka_connection
    producer = Producer(kafka.client_settings)
    for key, value in [("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("b", None), ("d", None), ("d", "1")]:
        producer.produce(topic, key=key, value=value, partition=0)
    assert producer.flush(30) == 0

    assert newest_by_key(consumer, topic) == {b"a": b"2", b"c": b"1", b"d": b"1"}
    assert newest_by_key(consumer, topic, records=2) == {b"d": b"1"}
    assert newest_by_key(consumer, f"{topic}-of-another-name") == {}
    consumer.close()


def test_newest_report_of_each_key_is_read_with_its_age(settings: Settings, topic: str) -> None:
    kafka, reports = settings.kafka_connection, ReportTopic(topic)
    publisher = ReportPublisher(kafka, reports)
    for done in (1, 2):
        publisher.publish("a stage", {"done": done})
    publisher.publish("another", {"done": 3})
    publisher.close()

    found = reports.read(kafka)

    assert [report.fields["done"] for report in found] == [2, 3]
    assert all(report.is_fresh and 0 <= report.age_s < 10 for report in found)


@pytest.fixture
def changelog_of_two(settings: Settings) -> str:
    """A changelog with two partitions: five records in the first one, and a transaction's record in the second."""
    kafka, name = settings.kafka_connection, f"changelog-{uuid.uuid4().hex}"
    ensure_topics(admin_client(kafka), [changelog(name, 2)], 1)
    producer = Producer({**kafka.client_settings, "transactional.id": name})
    producer.init_transactions(READ_TIMEOUT_S)
    for partition, numbers in ((0, range(5)), (1, range(1))):
        producer.begin_transaction()
        for number in numbers:
            producer.produce(name, key="k", value=str(number), partition=partition)
        producer.commit_transaction(READ_TIMEOUT_S)
    return name


@pytest.fixture
def errors() -> list[tuple[str, int | None]]:
    """The names of the reader's errors, each with its partition."""
    return []


@pytest.fixture
def reader(
    settings: Settings, changelog_of_two: str, errors: list[tuple[str, int | None]]
) -> Iterator[ChangelogReader]:
    def on_error(error: KafkaError, partition: int | None) -> None:
        errors.append((error.name(), partition))

    consumer = changelog_consumer(settings.kafka_connection, "test")
    found = ChangelogReader(consumer, changelog_of_two, on_error)
    yield found
    found.close()


def read_to_the_end(reader: ChangelogReader, partitions: set[int]) -> list[tuple[int, int]]:
    """Return the partition and offset of each record."""
    found: list[tuple[int, int]] = []
    at_end: set[int] = set()

    def is_at_end() -> bool:
        for partition, offset, message in reader.records(reader.poll(3, 0.1)):
            assert reader.offsets[partition] == offset + 1 == (message.offset() or 0) + 1
            found.append((partition, offset))
        at_end.update(reader.at_end)
        return at_end == partitions

    wait_until(is_at_end, "the reader is at the end", READ_TIMEOUT_S)
    return sorted(found)


def test_reader_reads_each_partition_from_its_offset_to_the_end_behind_the_last_record(
    reader: ChangelogReader,
) -> None:
    reader.assign({1: OFFSET_BEGINNING, 0: 2})

    assert reader.position == (0, 2)
    assert read_to_the_end(reader, {0, 1}) == [(0, 2), (0, 3), (0, 4), (1, 0)]
    assert reader.offsets == {1: 2, 0: 6}, "behind the markers of the transactions"
    assert reader.bounds(2) == ((0, 6), (0, 2))


def test_reader_that_is_assigned_again_reads_only_the_new_partitions(reader: ChangelogReader) -> None:
    reader.assign({0: 0, 1: 0})
    read_to_the_end(reader, {0, 1})

    reader.assign({0: 3})

    assert read_to_the_end(reader, {0}) == [(0, 3), (0, 4)]
    assert reader.offsets == {0: 6}


def test_reader_passes_on_that_an_offset_is_lost(
    reader: ChangelogReader, errors: list[tuple[str, int | None]]
) -> None:
    reader.assign({0: 99, 1: 0})

    def is_reported() -> bool:
        assert all(partition == 1 for partition, _, _ in reader.records(reader.poll(3, 0.1)))
        return bool(errors)

    wait_until(is_reported, "the reader has an error", READ_TIMEOUT_S)
    assert errors == [("_AUTO_OFFSET_RESET", 0)]
