"""Folds a whole source topic to its changelog, for tests of the lake without a stream driver."""

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from include.declarations.read_model import ReadModel
from include.kafka.schema_ids import known_schema_ids
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, changelog, changelog_topic, ensure_topics
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import first_version
from spark_jobs.folding.fold_query import changelog_stream
from spark_jobs.folding.kafka_source import topic_records
from spark_jobs.folding.replay import source_ends
from tests.support.lake.stream_checkpoint import write_stream_checkpoint
from tests.support.stream_process import make_topics


def make_first_version(settings: Settings, name: str) -> None:
    """Create the topics of a read model whose source topic has its name, and register its first version."""
    kafka = settings.kafka_connection
    make_topics(settings, name)
    ensure_topics(admin_client(kafka), [changelog(changelog_topic(name, 1), settings.topics.partitions)], 1)
    with VersionRegistry(kafka) as versions:
        versions.ensure_topic()
        versions.compare_and_set(first_version(name, 1), 0)


def fold_log(spark: SparkSession, settings: Settings, model: ReadModel, batch: int = 0) -> None:
    """Write the state of each key of the log to the changelog, and the checkpoint that the fold's query has after this batch."""
    topic, kafka = changelog_topic(model.name, 1), settings.kafka_connection
    ends = source_ends(kafka, model.source_topic)
    records = topic_records(spark, kafka, model.source_topic, ends)
    schema_id = SchemaRegistry(settings.registry.connection).register(topic, model.state_schema)
    ids = known_schema_ids(settings, model.source_topic, frozenset())
    states = changelog_stream(records, model, 1, ids, schema_id, settings.topics.partitions)
    producer = Producer({**kafka.client_settings, "partitioner": "murmur2_random"})
    for row in states.collect():
        headers: dict[str, str | bytes | None] = {
            header["key"]: bytes(header["value"]) for header in row["headers"] or ()
        }
        value = row["value"] and bytes(row["value"])
        producer.produce(topic, key=bytes(row["key"]), value=value, headers=headers)
    assert producer.flush(60) == 0
    write_stream_checkpoint(settings, model, batch, {str(partition): end for partition, end in ends.items()})
