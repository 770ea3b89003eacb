"""The unknown schema ids ahead of a checkpoint are found behind any number of records that have none, or a known one."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from include.kafka.topics import Topic, admin_client, ensure_topics
from include.kafka.wire_format import header
from include.settings import Settings
from spark_jobs.folding import schema_cache
from spark_jobs.folding.schema_cache import headers_ahead

TOPIC = "headers-ahead"
KNOWN, UNKNOWN = 5, {7, 8}
JUNK_RECORDS = 1_000


def test_only_headers_with_unknown_ids_are_counted(
    settings: Settings, lake_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bootstrap = settings.kafka.bootstrap_servers
    ensure_topics(admin_client(bootstrap), [Topic(TOPIC, 2)], 1)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(JUNK_RECORDS):
        producer.produce(TOPIC, b"\x01" + number.to_bytes(4))
        producer.produce(TOPIC, header(KNOWN) + number.to_bytes(4))
    for value in (None, b"", header(9)[:4], *(header(schema_id) + b"payload" for schema_id in UNKNOWN)):
        producer.produce(TOPIC, value)
    assert producer.flush(30) == 0
    monkeypatch.setattr(schema_cache, "MAX_HEADERS_AHEAD", len(UNKNOWN))

    found = headers_ahead(lake_spark, bootstrap, TOPIC, str(tmp_path / "no checkpoint"), {KNOWN})

    assert found == set(map(header, UNKNOWN))
    assert len(headers_ahead(lake_spark, bootstrap, TOPIC, str(tmp_path / "no checkpoint"), set())) == 2
