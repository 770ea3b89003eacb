"""Dead letters: one query per source topic writes every record that cannot be decoded to `<topic>.dead-letter`, exactly once.

The query uses native columns, like the folds, and is independent of them: they continue when it fails. Dead letters of source
partition p go to partition p in the order of their offsets, so the newest one there shows how far they are written, and a restart
repeats none of them.
"""

import logging
from collections.abc import Callable

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from pyspark.sql import Column, DataFrame

from include.kafka.dead_letters import newest_dead_letters
from include.kafka.record_schema import RecordSchema
from include.kafka.topics import dead_letter_topic, max_message_bytes
from include.stream.slot_planning import SlotRank
from spark_jobs.folding.decode import EventDecoder, SchemaIds, undecodable
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.streaming.dead_letter_records import dead_letter_records, is_new
from spark_jobs.streaming.query_spec import QueryEndpoints, QuerySpec, TriggerSettings
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)

# The cost of a query is per answer of the broker, not per record: without these, the query of letters costs as much as a fold. A letter is
# written half a second later.
UNHURRIED = (("kafka.fetch.min.bytes", "1000000"), ("kafka.fetch.max.wait.ms", "500"))


def query_specs(context: StreamContext) -> list[QuerySpec]:
    """Return one query per source topic, with the event types of all read models and routes that read it."""
    specs = []
    for topic in context.catalog.source_topics:
        endpoints = context.endpoints(topic, dead_letter_topic(topic), f"dead-letter/{topic}")
        specs.append(
            dead_letter_spec(
                endpoints,
                context.schemas(topic),
                context.catalog.event_schemas(topic),
                context.triggers,
                context.consumer,
                context.admin,
                context.catalog.record_key(topic),
            )
        )
    return specs


def dead_letter_spec(
    endpoints: QueryEndpoints,
    schemas: KnownSchemas,
    readers: tuple[RecordSchema, ...],
    triggers: TriggerSettings,
    consumer: Consumer,
    admin: AdminClient,
    record_key: Callable[[], Column] | None = None,
) -> QuerySpec:
    """Return the query of one source topic; `readers` are the event types that can be decoded, `record_key` as in EventDecoder."""

    def records(source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        # A partition in which none is found behind many records of another program starts at the query's checkpoint: its
        # newest letters may then be written twice, and none is lost.
        written = newest_dead_letters(consumer, endpoints.source_topic, endpoints.partitions)
        LOG.info("dead letters of %s are written up to offsets %s", endpoints.source_topic, written)
        largest = max_message_bytes(admin, endpoints.sink_topic)
        decoder = EventDecoder(readers, schema_ids, endpoints.partitions, record_key)
        bad = undecodable(decoder.decode(source))
        return dead_letter_records(endpoints.source_topic, bad.where(is_new(written)), largest)

    return QuerySpec(
        name=endpoints.sink_topic,
        endpoints=endpoints,
        schemas=schemas,
        records=records,
        triggers=triggers,
        # Lookups do not depend on it: a topic that accepts no letters must not stop the folds.
        is_essential=False,
        # Letters that are written already are not written again.
        rereads_after_loss=True,
        # It would only slow down the catch-up of a fold.
        waits_for_others=True,
        real_time_source=UNHURRIED,
        slot_rank=(SlotRank.SERVING, 0),
    )
