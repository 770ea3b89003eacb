"""Dead letters: one query per source topic writes every record that cannot be decoded, folded or routed to `<topic>.dead-letter`, exactly once.

The query uses native columns, like the folds, and is independent of them: they continue when it fails. It is a route with one pair of partitions for
each source partition: dead letters of partition p go to partition p in the order of their offsets, so the newest one there shows how
far they are written, and a restart repeats none of them.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit

from include.declarations.event_types.topic_events import TopicEvents
from include.kafka.dead_letters import newest_dead_letters
from include.kafka.origins import LanePartition, OutputOrigin
from include.kafka.schema_ids import SchemaIds
from include.kafka.topics import dead_letter_topic, max_message_bytes
from include.position import Offsets
from include.stream.slot_planning import SlotRank
from include.versions.version_lock import query_lock
from spark_jobs.folding.decode import undecodable
from spark_jobs.folding.json_decode import event_decoder
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.routing.declared_failures import FailureCheck, failure_checks, with_failures
from spark_jobs.routing.origin_columns import is_new_of_pair
from spark_jobs.streaming.commits.commit_interval import MOST_REPEATED
from spark_jobs.streaming.outputs.dead_letter_records import dead_letter_records
from spark_jobs.streaming.outputs.sink_delivery import DEAD_LETTERS
from spark_jobs.streaming.query_spec import QueryEndpoints, QuerySpec, TriggerSettings
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)

# The cost of a query is per answer of the broker, not per record: without these, the query of dead letters costs as much as a fold. A dead letter is
# written half a second later.
UNHURRIED = (("kafka.fetch.min.bytes", "1000000"), ("kafka.fetch.max.wait.ms", "500"))
# The driver before has ended, and its locks are free.
LOCK_WAIT_S = 2.0


def query_specs(context: StreamContext) -> list[QuerySpec]:
    """Return one query per source topic, with the event types of all read models and routes that read it."""
    specs = []
    for topic in context.catalog.source_topics:
        endpoints = context.endpoints(topic, dead_letter_topic(topic), f"dead-letter/{topic}")
        spec = dead_letter_spec(
            endpoints,
            context.schemas(topic),
            context.catalog.events(topic),
            failure_checks(context.catalog.readers_of(topic)),
            context.triggers,
            context.consumer,
            context.admin,
        )
        guard = partial(query_lock, context.settings.home, spec.name, wait_s=LOCK_WAIT_S)
        specs.append(replace(spec, guard=guard))
    return specs


def dead_letter_spec(
    endpoints: QueryEndpoints,
    schemas: KnownSchemas,
    events: TopicEvents,
    checks: Sequence[FailureCheck],
    triggers: TriggerSettings,
    consumer: Consumer,
    admin: AdminClient,
) -> QuerySpec:
    """Return the query of one source topic; `events` can be decoded, and become dead letters if one of the checks fails."""

    def records(source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        # A partition in which none is found behind many records of another program starts at the query's checkpoint: its
        # newest dead letters may then be written twice, and none is lost.
        written = newest_dead_letters(consumer, endpoints.source_topic, endpoints.partitions)
        LOG.info("dead letters of %s are written up to offsets %s", endpoints.source_topic, written)
        largest = max_message_bytes(admin, endpoints.sink_topic)
        decoded = event_decoder(events, schema_ids, endpoints.partitions).decode(source)
        bad = undecodable(with_failures(decoded, checks))
        return dead_letter_records(
            endpoints.source_topic, _new_letters(bad, endpoints.partitions, written), largest
        )

    return QuerySpec(
        name=endpoints.sink_topic,
        endpoints=endpoints,
        schemas=schemas,
        records=records,
        triggers=triggers,
        # Lookups do not depend on it: a topic that accepts no dead letters must not stop the folds.
        is_essential=False,
        # Letters that are written already are not written again.
        rereads_after_loss=True,
        # It would only slow down the catch-up of a fold.
        waits_for_others=True,
        idle_events=MOST_REPEATED,
        real_time_source=UNHURRIED,
        sink=DEAD_LETTERS.options,
        settles_in_s=DEAD_LETTERS.delivered_after_s,
        slot_rank=(SlotRank.SERVING, 0),
    )


def _new_letters(bad: DataFrame, partitions: int, written: Offsets) -> DataFrame:
    """Return the undecodable records without a dead letter. written: source partition -> the offset after its newest one."""
    newest = {LanePartition(p, p): OutputOrigin(end - 1, 0) for p, end in written.items()}
    pairs = [LanePartition(p, p) for p in range(partitions)]
    origins = bad.withColumns({"source_offset": col("offset"), "source_index": lit(0)})
    return origins.where(is_new_of_pair(newest, pairs, col("partition"))).select(*bad.columns)
