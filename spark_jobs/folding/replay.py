"""Reads events back from the log in one batch, decoded as in the stream, for checks and staging tables."""

import logging

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, substring

from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.schema_rejections import Rejection, read_rejections
from include.kafka.topic_state import topic_state
from include.kafka.wire_format import HEADER_BYTES, MAGIC, split
from include.position import Offsets
from include.settings import Settings
from spark_jobs.folding.decode import EventDecoder, SchemaIds, good_events
from spark_jobs.folding.independent_decode import independently_decoded
from spark_jobs.folding.topic_records import topic_records

LOG = logging.getLogger(__name__)


def source_ends(bootstrap_servers: str, topic: str) -> Offsets:
    """Return the current end offset of each partition of a source topic.

    Raises KafkaUnavailableError when the broker does not answer or the topic does not exist.
    """
    state = topic_state(bootstrap_servers, topic)
    if state is None:
        message = f"Topic {topic} does not exist: start the stream driver on this Kafka first."
        raise KafkaUnavailableError(message)
    return state.ends


def replayed_events(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    until: Offsets,
    since: Offsets | None = None,
) -> DataFrame:
    """Return the events that a read model folds, from the first one or from `since`, up to these end offsets.

    The columns are those of the stream: key, partition, offset, event_type, each event type's struct, and their shared fields.
    All schema ids in the log are looked up first.
    """
    records, decoder = _records_and_decoder(spark, settings, model, until, since)
    return good_events(decoder.decode(records))


def events_for_staging(
    spark: SparkSession, settings: Settings, model: ReadModel, until: Offsets
) -> DataFrame:
    """Return the events up to these end offsets as `replayed_events` does, but decoded by another library."""
    return independently_decoded(*_records_and_decoder(spark, settings, model, until))


def _records_and_decoder(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    until: Offsets,
    since: Offsets | None = None,
) -> tuple[DataFrame, EventDecoder]:
    records = topic_records(spark, settings.kafka.bootstrap_servers, model.source_topic, until, since)
    ids = known_schema_ids(settings, model.source_topic, records)
    return records, EventDecoder(model.event_schemas, ids, len(until))


def known_schema_ids(settings: Settings, topic: str, records: DataFrame) -> SchemaIds:
    """Return the schema ids in these records as found in the registry; those that live queries have rejected stay rejected."""
    registry = SchemaRegistry(settings.registry.url)
    header = substring(col("value"), 1, HEADER_BYTES).alias("header")
    found = {
        bytes(row.header) for row in records.select(header).distinct().collect() if row.header is not None
    }
    ids = {split(h)[0] for h in found if len(h) == HEADER_BYTES and h[0] == MAGIC}
    writers = registry.schema_ids(topic)
    writers |= {i: schema for i in ids - writers.keys() if (schema := registry.schema_by_id(i)) is not None}
    absent = {schema_id: Rejection(Offsets(), is_open=True) for schema_id in ids - writers.keys()}
    # After the lookups: an id that was registered since it was rejected is in `writers`, and its rejection has been written.
    rejected = read_rejections(settings.kafka.bootstrap_servers, topic)
    return SchemaIds(writers, rejected | absent)
