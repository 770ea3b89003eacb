"""Dead letters: one query per source topic writes every record that cannot be decoded to `<topic>.dead-letter`, exactly once.

The query uses native columns, like the folds, and is independent of them. Dead letters of source partition p go to partition
p in the order of their offsets, so the newest one there shows how far they are written, and a restart repeats none of them.
"""

import logging

from confluent_kafka import Consumer
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, coalesce, col, lit, struct, when

from include.kafka.log_reading import read_tail
from include.kafka.record_schema import RecordSchema
from include.kafka.topics import dead_letter_topic
from include.stream.slot_planning import SlotRank
from spark_jobs.folding.decode import EventDecoder, SchemaIds, undecodable
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.streaming.query_spec import QueryEndpoints, QuerySpec, TriggerSettings
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)
SOURCE_OFFSET_HEADER = "source_offset"


def query_specs(context: StreamContext) -> list[QuerySpec]:
    """Return one query per source topic, with the event types of all of its read models."""
    models = list(context.models.values())
    specs = []
    for topic in dict.fromkeys(model.source_topic for model in models):
        readers = {
            reader.name: reader
            for model in models
            if model.source_topic == topic
            for reader in model.event_schemas
        }
        endpoints = context.endpoints(topic, dead_letter_topic(topic), f"dead-letter/{topic}")
        specs.append(
            dead_letter_spec(
                endpoints,
                context.schemas(topic),
                tuple(readers.values()),
                context.triggers,
                context.consumer,
            )
        )
    return specs


def dead_letter_spec(
    endpoints: QueryEndpoints,
    schemas: KnownSchemas,
    readers: tuple[RecordSchema, ...],
    triggers: TriggerSettings,
    consumer: Consumer,
) -> QuerySpec:
    """Return the query of one source topic; `readers` are the event types that can be decoded."""

    def records(source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        newest = newest_offsets(consumer, endpoints.sink_topic, endpoints.partitions)
        LOG.info("newest dead letters of %s, by partition: offsets %s", endpoints.source_topic, newest)
        bad = undecodable(EventDecoder(readers, schema_ids, endpoints.partitions).decode(source))
        return dead_letter_records(endpoints.source_topic, bad.where(_is_new(newest)))

    return QuerySpec(
        name=endpoints.sink_topic,
        endpoints=endpoints,
        schemas=schemas,
        records=records,
        triggers=triggers,
        # It would only slow down the catch-up of a fold.
        waits_for_others=True,
        slot_rank=(SlotRank.SERVING, 0),
    )


def dead_letter_records(source_topic: str, records: DataFrame) -> DataFrame:
    """Return bad records as Kafka records: key and value unchanged, with the reason and the origin as text headers."""
    headers = {
        "reason": col("reason"),
        "source_topic": lit(source_topic),
        "source_partition": col("partition").cast("string"),
        SOURCE_OFFSET_HEADER: col("offset").cast("string"),
    }
    texts = [
        struct(lit(name).alias("key"), text.cast("binary").alias("value")) for name, text in headers.items()
    ]
    return records.select("key", "value", "partition", array(*texts).alias("headers"))


def newest_offsets(consumer: Consumer, topic: str, partitions: int) -> dict[int, int]:
    """Return source partition -> source offset of its newest dead letter; omits partitions without one."""
    newest: dict[int, int] = {}
    for partition in range(partitions):
        for message in read_tail(consumer, topic, partition, records=1):
            headers = dict(message.headers() or [])
            newest[partition] = int(headers[SOURCE_OFFSET_HEADER] or -1)
    return newest


def _is_new(newest: dict[int, int]) -> Column:
    written = [when(col("partition") == partition, lit(offset)) for partition, offset in newest.items()]
    return col("offset") > coalesce(*written, lit(-1))
