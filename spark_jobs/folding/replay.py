"""Events read back from the log in one batch, decoded as the stream decodes them, for checks and stagings."""

import logging

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, substring

from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, partition_count
from include.kafka.wire_format import HEADER_BYTES, MAGIC
from include.position import Offsets
from include.settings import Settings
from spark_jobs.folding.decode import EventDecoder, SchemaIds, good_events
from spark_jobs.folding.schema_cache import RegistrySchemas

LOG = logging.getLogger(__name__)
RECORDS_A_TASK = 250_000


def source_ends(settings: Settings, topic: str) -> Offsets:
    """Return the end offset of each partition of a source topic, now.

    Raises KafkaUnavailableError when the broker does not answer, or has no such topic.
    """
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    try:
        admin = admin_client(settings.kafka.bootstrap_servers)
        partitions = partition_count(admin, topic)
        if partitions is None:
            message = f"There is no topic {topic}: has the stream ever run on this Kafka?"
            raise KafkaUnavailableError(message)
        return Offsets.of_ends(end_offsets(consumer, topic, partitions))
    finally:
        consumer.close()


def topic_records(
    spark: SparkSession, settings: Settings, topic: str, until: Offsets, since: Offsets | None = None
) -> DataFrame:
    """Return a topic's records up to these end offsets, as Spark's Kafka source has them.

    From the first one, or from the offsets in `since`, which may lie beyond the end: then nothing of that partition.
    """
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", settings.kafka.bootstrap_servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest" if since is None else _starts(topic, since, until))
        # Spark asks for each partition's end when it is planned; `until` keeps what comes later out.
        .option("endingOffsets", until.for_spark(topic))
        .option("failOnDataLoss", "true")
        # More, smaller tasks: progress is measured in finished tasks, and no core waits for a long one.
        .option("maxRecordsPerPartition", str(RECORDS_A_TASK))
        .option("kafka.isolation.level", "read_committed")
        .load()
    )


def _starts(topic: str, since: Offsets, until: Offsets) -> str:
    """Return the offsets to begin at as Spark's Kafka source wants them: one for each partition, none beyond its end."""
    return Offsets({p: min(since.of(p), end) for p, end in until.items()}).for_spark(topic)


def replayed_events(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    until: Offsets,
    since: Offsets | None = None,
) -> DataFrame:
    """Return the events that a read model folds, up to these end offsets, from the first one or from `since`.

    Columns as for the stream: key, partition, offset, event_type, each event type's struct, and their shared fields.
    Every schema id in the log is looked up first, as the stream does.
    """
    records = topic_records(spark, settings, model.source_topic, until, since)
    ids = known_schema_ids(settings, model.source_topic, records)
    return good_events(EventDecoder(model.event_schemas, ids).decode(records))


def known_schema_ids(settings: Settings, topic: str, records: DataFrame) -> SchemaIds:
    """Return what the registry knows of the schema ids in these records; unknown ones are rejected, as in the stream."""
    schemas = RegistrySchemas(SchemaRegistry(settings.registry.url), topic)
    header = substring(col("value"), 1, HEADER_BYTES).alias("header")
    found = {
        bytes(row.header) for row in records.select(header).distinct().collect() if row.header is not None
    }
    schemas.learn({h for h in found if len(h) == HEADER_BYTES and h[0] == MAGIC})
    return schemas.schema_ids
