"""A scheduled compaction starts no Spark job when it has nothing to do."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from include.kafka.topics import admin_client, ensure_topics
from include.lake.pending_work import has_pending_work
from include.settings import Settings
from tests.integration.lake.test_compaction import compacted
from tests.support.faults.transactions import TransactionalWriter
from tests.support.lake.lake_ledger import LakeLedger
from tests.support.lake.stream_checkpoint import write_stream_checkpoint


def test_a_scheduled_compaction_knows_without_spark_whether_it_has_work(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = LakeLedger(settings, "compacted-pending")
    ledger.model = replace(ledger.model, source_topic="compacted-pending")
    ensure_topics(admin_client(settings.kafka_connection), ledger.model.source_topics(settings.topics), 1)
    assert has_pending_work(settings, ledger.model), "there is no table yet"
    ledger.put("a", 1, 1)
    compacted(ledger, lake_spark)
    assert not has_pending_work(settings, ledger.model)
    assert has_pending_work(settings, ledger.model, datetime.now(UTC) + timedelta(hours=1)), "VACUUM is due"

    ledger.put("a", 2, 2)
    ledger.flush()
    assert has_pending_work(settings, ledger.model), "the changelog has a new record"
    compacted(ledger, lake_spark)
    assert not has_pending_work(settings, ledger.model)

    events = Producer(settings.kafka_connection.client_settings)
    events.produce(ledger.model.source_topic, key=b"a", value=b"not an event", partition=0)
    assert events.flush(30) == 0
    assert has_pending_work(settings, ledger.model), (
        "the source has a new event, and the table does not say that it is complete"
    )
    write_stream_checkpoint(ledger.settings, ledger.model, 0, {"0": 1})
    compacted(ledger, lake_spark)
    assert not has_pending_work(settings, ledger.model)

    TransactionalWriter(settings, ledger.model.source_topic).abort([(b"a", b"aborted")], partition=0)
    assert not has_pending_work(settings, ledger.model), "markers and aborted records are no events"

    ledger.make_new_version_live(2)
    assert has_pending_work(settings, ledger.model), "another version is live"
