"""Where records end: markers of transactions, aborted, compacted and deleted records have offsets that no reader gets."""

import time
import uuid
from collections.abc import Iterator
from typing import cast

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from include.kafka import record_ends
from include.kafka.log_reading import (
    age_beyond_s,
    end_offsets,
    end_offsets_of_topics,
    log_consumer,
    read_tail,
    record_at,
)
from include.kafka.record_ends import OpenTransaction, RecordEnd, RecordEnds, unread_ends
from include.kafka.topic_state import ends_if_known
from include.position import Offsets
from include.settings import Settings
from spark_jobs.streaming import log_loss
from spark_jobs.streaming.log_loss import LogNotes
from spark_jobs.streaming.query_spec import QueryEndpoints
from tests.support.faults.transactions import TransactionalWriter
from tests.support.waiting import wait_until

PARTITIONS = 2
ONE = [(b"key", b"value")]
# More than the tails that are read of output topics and changelogs.
MANY = ONE * 700


@pytest.fixture
def consumer(settings: Settings) -> Iterator[Consumer]:
    found = log_consumer(settings.kafka_connection)
    yield found
    found.close()


@pytest.fixture
def admin(settings: Settings) -> AdminClient:
    return AdminClient(settings.kafka_connection.client_settings)


@pytest.fixture
def topic(admin: AdminClient) -> str:
    name = f"record-ends-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    return name


def append(settings: Settings, topic: str, records: int, partition: int = 0) -> None:
    producer = Producer(settings.kafka_connection.client_settings)
    for _ in range(records):
        producer.produce(topic, b"value", b"key", partition=partition)
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    ("before", "history", "record_end"),
    [
        (3, "", 3),
        (0, "c", 1),
        (0, "a", 0),
        (0, "aaa", 0),
        (2, "c", 3),
        (2, "a", 2),
        (2, "caac", 9),
        (2, "cccaa", 7),
        (1, "cA", 2),
        (1, "cAaA", 2),
    ],
)
def test_markers_and_aborted_records_are_no_records(
    settings: Settings, consumer: Consumer, topic: str, before: int, history: str, record_end: int
) -> None:
    """Each letter of the history is a transaction: of one record, committed or aborted, or of many, aborted."""
    append(settings, topic, before)
    if history:
        writer = TransactionalWriter(settings, topic)
        for letter in history:
            if letter == "c":
                writer.commit(ONE, partition=0)
            else:
                writer.abort(MANY if letter == "A" else ONE, partition=0)
    ends = Offsets.of_ends(end_offsets(consumer, topic, PARTITIONS))
    assert end_offsets_of_topics(consumer, {topic: PARTITIONS}) == {topic: tuple(ends.values())}
    record_ends = RecordEnds(consumer)
    assert ends.of(0) >= record_end + len(history[len(history.rstrip("aA")) :])

    assert unread_ends(consumer, topic, ends, Offsets()) == Offsets({0: record_end, 1: 0})
    assert record_ends.unread(topic, ends, Offsets({0: ends.of(0)})) == ends, "everything has been read"
    found = record_ends.of({(topic, p): end for p, end in ends.items()})
    assert found[topic, 0].offset == record_end
    assert found[topic, 1] == RecordEnd(0)
    assert (found[topic, 0].written_s is None) == (record_end == 0)
    assert ends_if_known(settings.kafka_connection, topic) == ends
    assert ends_if_known(settings.kafka_connection, topic, {}) == {0: record_end, 1: 0}
    tail = [message.offset() for message in read_tail(consumer, topic, 0, records=1)]
    assert tail[-1:] == ([record_end - 1] if record_end else []), "the newest record is found behind them"
    assert record_at(consumer, topic, 0, record_end) is None
    assert age_beyond_s(consumer, topic, {0: record_end}, ends) == 0.0, "no event is missing"


def test_a_known_end_is_not_read_again_and_a_greater_one_only_from_there(
    settings: Settings, consumer: Consumer, topic: str
) -> None:
    append(settings, topic, 1)
    writer = TransactionalWriter(settings, topic)
    writer.abort(MANY, partition=0)
    record_ends = RecordEnds(consumer)

    def found() -> int:
        ends = Offsets.of_ends(end_offsets(consumer, topic, PARTITIONS))
        return record_ends.unread(topic, ends, Offsets()).of(0)

    assert found() == 1
    reads: list[dict[tuple[str, int], int]] = []
    newest = record_ends._newest

    def counted(starts: dict[tuple[str, int], int], ends: dict[tuple[str, int], int]) -> object:
        reads.append(dict(starts))
        return newest(starts, ends)

    record_ends._newest = counted  # type: ignore[method-assign,assignment]
    assert (found(), reads) == (1, [])
    writer.abort(ONE, partition=0)
    assert found() == 1
    assert min(start[topic, 0] for start in reads) == len(MANY) + 2
    writer.commit(ONE, partition=0)
    assert found() == len(MANY) + 2 + 2 + 1


def test_records_that_were_deleted_are_no_records(
    settings: Settings, admin: AdminClient, consumer: Consumer, topic: str
) -> None:
    append(settings, topic, 5)
    TransactionalWriter(settings, topic).abort(ONE * 3, partition=0)
    ends = Offsets.of_ends(end_offsets(consumer, topic, PARTITIONS))
    known = RecordEnds(consumer)
    assert known.unread(topic, ends, {}) == {0: 5, 1: 0}

    admin.delete_records([TopicPartition(topic, 0, 7)])[TopicPartition(topic, 0)].result(30)

    assert known.unread(topic, ends, {}) == {0: 5, 1: 0}
    assert unread_ends(consumer, topic, ends, {}) == {0: 7, 1: 0}, "the log begins there"
    append(settings, topic, 1)
    assert known.unread(topic, Offsets.of_ends(end_offsets(consumer, topic, PARTITIONS)), {}).of(0) == 10


def test_records_behind_an_open_transaction_wait_and_are_named_until_the_broker_aborts_it(
    settings: Settings,
    admin: AdminClient,
    consumer: Consumer,
    topic: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kafka = settings.kafka_connection
    monkeypatch.setattr(record_ends, "OPEN_S", 1.0)
    append(settings, topic, 2)

    def found() -> list[OpenTransaction]:
        return record_ends.open_transactions(kafka, admin, [topic, "no-such-topic"])

    assert found() == []
    hanging = TransactionalWriter(settings, topic, timeout_s=4.0)
    hanging.leave_open(ONE * 3, partition=0)
    append(settings, topic, 4)
    assert end_offsets(consumer, topic, PARTITIONS) == (2, 0), "readers of committed records wait"
    assert ends_if_known(kafka, topic, Offsets({0: 2})) == {0: 2, 1: 0}
    began_s = time.time()

    wait_until(lambda: bool(found()), "the transaction is named", 20)
    (held,) = found()
    assert (held.topic, held.records) == (topic, 7)
    assert 1.0 < held.open_s < time.time() - began_s + 10.0

    wait_until(lambda: end_offsets(consumer, topic, PARTITIONS)[0] == 10, "the broker aborts it", 60)
    assert found() == []
    assert ends_if_known(kafka, topic, {}) == {0: 9, 1: 0}


def test_the_record_before_markers_is_noted_so_that_its_loss_is_found(
    settings: Settings, admin: AdminClient, consumer: Consumer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another topic stands for this one after Kafka has lost its newest record, and another record has taken its offset."""
    files: dict[str, str] = {}
    monkeypatch.setattr(log_loss, "write_text", lambda _spark, path, text: files.update({path: text}))
    monkeypatch.setattr(log_loss, "read_text", lambda _spark, path: files.get(path))
    other = f"{topic}-other"
    admin.create_topics([NewTopic(other, PARTITIONS, 1)])[other].result(30)
    for name, value in ((topic, b"read"), (other, b"another")):
        writer = TransactionalWriter(settings, name)
        writer.commit([(b"key", value)], partition=0)
        writer.abort(ONE, partition=0)
    read = Offsets.of_ends(end_offsets(consumer, topic, PARTITIONS))

    def notes(source_topic: str) -> LogNotes:
        endpoints = QueryEndpoints(settings.kafka_connection, source_topic, topic, PARTITIONS, "checkpoint")
        return LogNotes(cast("SparkSession", None), consumer, endpoints)

    notes(topic).note(read)

    assert notes(topic).lost_records(read) is None
    assert "record at offset 0" in str(notes(other).lost_records(read))
