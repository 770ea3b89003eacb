"""Reads events back from the log in one batch, decoded as in the stream, for checks and staging tables."""

import logging
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, substring

from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.read_model import ReadModel
from include.kafka.schema_ids import UNKNOWN_SCHEMA_ID, known_schema_ids
from include.kafka.topic_state import source_state
from include.kafka.wire_format import HEADER_BYTES, MAGIC, split
from include.position import Offsets
from include.settings import KafkaConnection, Settings
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.decode import EventDecoder, good_events
from spark_jobs.folding.fold_query import fold_failure, foldable
from spark_jobs.folding.independent_decode import independently_decoded
from spark_jobs.folding.kafka_source import topic_records
from spark_jobs.runtime.session import session_settings

LOG = logging.getLogger(__name__)
T = TypeVar("T")
WRITTEN_AT = "record:written_at"


class IdsOf(Enum):
    """Which schema ids are looked up before events are decoded: those of the topic's subject, or also all those in the log, which is
    then read once more.
    """

    SUBJECT = auto()
    LOG = auto()


def source_ends(kafka: KafkaConnection, topic: str) -> Offsets:
    """Return the current end offset of each partition of a source topic; raises as `source_state` does."""
    return source_state(kafka, topic).ends


def with_needed_schema_ids(job: Callable[[IdsOf], T]) -> T:
    """Run a job that decodes events, and return its result.

    With IdsOf.SUBJECT it fails at the first record with another schema id, and is then repeated with IdsOf.LOG, which reads the
    whole log once more: nearly all records have ids of the subject.
    """
    try:
        return job(IdsOf.SUBJECT)
    except PySparkException as error:
        if UNKNOWN_SCHEMA_ID not in str(error):
            raise
        LOG.info("some records have schema ids of other subjects, or of none: looking up every id in the log")
        return job(IdsOf.LOG)


def decoding(spark: SparkSession, job: Callable[[IdsOf], T]) -> T:
    """Run a job as `with_needed_schema_ids` does; Spark decodes each event once."""
    with session_settings(spark, DECODE_ONCE):
        return with_needed_schema_ids(job)


def replayed_events(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    until: Offsets,
    since: Offsets | None = None,
    *,
    revision: int,
    ids_of: IdsOf,
) -> DataFrame:
    """Return the events that a read model folds, from the first one that counts or from `since`, up to these end offsets.

    The columns are those of the stream: those of the record, each event type's struct, their short names, and the shared fields.

    Args:
        spark: the session.
        settings: of Kafka and the registry.
        model: the read model, with the start of the version (`ReadModel.reading`).
        until: the end offset of each partition of its source.
        since: the offsets to start at; the first ones by default.
        revision: of the fold: an event for which it fails is not folded.
        ids_of: which schema ids are known. A record with another one that is not rejected fails the job that reads the events (see
            with_needed_schema_ids).
    """
    since = _since(model, since)
    decoded = decoded_records(spark, settings, model.events, until, since, ids_of=ids_of)
    return good_events(decoded, failure=fold_failure(model, revision, decoded))


def events_for_staging(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    until: Offsets,
    *,
    revision: int,
    ids_of: IdsOf,
) -> DataFrame:
    """Return the events up to these end offsets as `replayed_events` does, but decoded by another library."""
    records, decoder = _records_and_decoder(spark, settings, model.events, until, _since(model, None), ids_of)
    return foldable(model, revision, independently_decoded(records, decoder))


def _since(model: ReadModel, since: Offsets | None) -> Offsets | None:
    """Return the offsets at which a replay starts: none below those at which the version starts."""
    if not model.starts:
        return since
    return model.starts if since is None else model.starts.merge(since)


def decoded_records(
    spark: SparkSession,
    settings: Settings,
    events: TopicEvents,
    until: Offsets,
    since: Offsets | None = None,
    *,
    ids_of: IdsOf,
    with_written_at: bool = False,
) -> DataFrame:
    """Return all records of a part of a topic as EventDecoder decodes them; arguments as those of `replayed_events`.

    events: the topic, which is in Avro, and the event types that are decoded. with_written_at: add WRITTEN_AT, the times of the records.
    """
    records, decoder = _records_and_decoder(spark, settings, events, until, since, ids_of)
    if not with_written_at:
        return decoder.decode(records)
    return decoder.decode(records.withColumn(WRITTEN_AT, col("timestamp")), (WRITTEN_AT,))


def _records_and_decoder(
    spark: SparkSession,
    settings: Settings,
    events: TopicEvents,
    until: Offsets,
    since: Offsets | None,
    ids_of: IdsOf,
) -> tuple[DataFrame, EventDecoder]:
    records = topic_records(spark, settings.kafka_connection, events.topic, until, since)
    ids = known_schema_ids(settings, events.topic, _ids_in(records) if ids_of is IdsOf.LOG else frozenset())
    return records, EventDecoder(events.readers, ids, len(until), events.record_key)


def _ids_in(records: DataFrame) -> AbstractSet[int]:
    header = substring(col("value"), 1, HEADER_BYTES).alias("header")
    found = {
        bytes(row.header) for row in records.select(header).distinct().collect() if row.header is not None
    }
    return {split(h)[0] for h in found if len(h) == HEADER_BYTES and h[0] == MAGIC}
