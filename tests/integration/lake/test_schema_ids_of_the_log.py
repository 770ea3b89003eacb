"""The schema ids of a log: the unknown ones ahead of a checkpoint are found behind any number of other records, and a replay looks up what it needs."""

import logging
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.registry.schema_rejections import Rejection, SchemaRejections
from include.kafka.schema_ids import SchemaIds, known_schema_ids
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import Topic, admin_client, ensure_topics
from include.kafka.wire_format import header
from include.position import Offsets
from include.settings import Settings
from spark_jobs.folding import schema_cache
from spark_jobs.folding.replay import (
    IdsOf,
    events_for_staging,
    replayed_events,
    source_ends,
    with_needed_schema_ids,
)
from spark_jobs.folding.schema_cache import headers_ahead
from tests.support.lake.checked_ledger import CheckedLedger

TOPIC = "headers-ahead"
PARTITIONS = 2
KNOWN, UNKNOWN = 5, {7, 8}
JUNK_RECORDS = 1_000


def test_only_headers_with_unknown_ids_are_counted(
    settings: Settings, lake_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = settings.kafka_connection
    ensure_topics(admin_client(kafka), [Topic(TOPIC, PARTITIONS)], 1)
    producer = Producer(kafka.client_settings)
    for number in range(JUNK_RECORDS):
        producer.produce(TOPIC, b"\x01" + number.to_bytes(4))
        producer.produce(TOPIC, header(KNOWN) + number.to_bytes(4))
    for value in (None, b"", header(9)[:4], *(header(schema_id) + b"payload" for schema_id in UNKNOWN)):
        producer.produce(TOPIC, value)
    assert producer.flush(30) == 0
    monkeypatch.setattr(schema_cache, "MAX_HEADERS_AHEAD", len(UNKNOWN))

    known = SchemaIds({KNOWN: event_schema("FundsAdded")})

    found = headers_ahead(lake_spark, kafka, TOPIC, str(tmp_path / "no checkpoint"), known)

    assert found == set(map(header, UNKNOWN))
    nothing_known = SchemaIds({})
    assert len(headers_ahead(lake_spark, kafka, TOPIC, str(tmp_path / "no checkpoint"), nothing_known)) == 2
    ends = Offsets.of_ends(end_offsets(log_consumer(kafka), TOPIC, PARTITIONS))
    rejected = SchemaIds(known.writers, {7: Rejection(ends), 8: Rejection(Offsets(), is_open=True)})
    assert headers_ahead(lake_spark, kafka, TOPIC, str(tmp_path / "no checkpoint"), rejected) == set()
    too_early = SchemaIds(known.writers, dict.fromkeys(UNKNOWN, Rejection(Offsets({0: 1, 1: 1}))))
    assert headers_ahead(lake_spark, kafka, TOPIC, str(tmp_path / "no checkpoint"), too_early) == found


def test_replay_rejects_what_live_queries_have_rejected(settings: Settings) -> None:
    kafka, topic = settings.kafka_connection, "replayed-ids"
    ensure_topics(admin_client(kafka), [Topic(topic, PARTITIONS)], 1)
    registered = SchemaRegistry(settings.registry.connection).register(topic, event_schema("FundsAdded"))
    absent, closed = 900_001, Rejection(Offsets({0: 7}))
    SchemaRejections(kafka, "stream driver").write(
        topic, {registered: closed, 8: Rejection(Offsets(), is_open=True)}
    )
    SchemaRejections(kafka, "catch up").write(topic, {registered: Rejection(Offsets({0: 5, 1: 3}))})
    SchemaRejections(kafka, "catch up").write("another-topic", {registered: Rejection(Offsets({0: 99}))})

    found = known_schema_ids(settings, topic, {registered, absent})

    assert found.writers.keys() == {registered}
    assert found.rejected == {
        registered: Rejection(Offsets({0: 7, 1: 3})),
        8: Rejection(Offsets(), is_open=True),
        absent: Rejection(Offsets(), is_open=True),
    }


def test_a_replay_looks_ids_up_in_the_log_only_where_a_record_needs_it(
    settings: Settings, lake_spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    topic = "ids-of-other-subjects"
    ledger = CheckedLedger(settings, topic)
    ledger.append(customers=5, events_each=2)
    kafka, model = settings.kafka_connection, ledger.model

    def count(ids_of: IdsOf) -> tuple[int, int]:
        until = source_ends(kafka, topic)
        native = replayed_events(lake_spark, settings, model, until, revision=1, ids_of=ids_of)
        staged = events_for_staging(lake_spark, settings, model, until, revision=1, ids_of=ids_of)
        return native.count(), staged.count()

    with caplog.at_level(logging.INFO):
        assert with_needed_schema_ids(count) == (10, 10)
        assert not caplog.messages
        # One schema of another subject, which is not folded here, and one of none.
        other = SchemaRegistry(settings.registry.connection).register(
            "another-topic", event_schema("FundsWithdrawn")
        )
        for schema_id in (other, 900_002):
            ledger.source.append_raw(b"customer 0", header(schema_id) + b"payload")
        ledger.source.flush()
        assert with_needed_schema_ids(count) == (10, 10)
    assert caplog.messages == [
        "some records have schema ids of other subjects, or of none: looking up every id in the log"
    ]
