"""The running query of one source topic's dead dead_letter_records: what cannot be decoded goes to `<topic>.dead-letter`, each record once.

It is apart from the folds, and as native and prompt as they are. What it folds again after a restart is not written twice:
dead dead_letter_records of source partition p go to partition p in order of offset, so its last one says up to where they are written.
"""

import logging

from confluent_kafka import Consumer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import array, coalesce, col, lit, struct, when

from include.kafka.log_reading import read_tail
from include.kafka.record_schema import RecordSchema
from spark_jobs.folding.decode import EventColumns, dead_letters
from spark_jobs.folding.fold_query import KafkaSource
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.streaming.supervised_query import QueryEndpoints
from spark_jobs.streaming.topic_query import TopicQuery, TriggerSettings

LOG = logging.getLogger(__name__)
SOURCE_OFFSET_HEADER = "source_offset"


class DeadLetterQuery(TopicQuery):
    """The dead dead_letter_records of one source topic; `readers` are the event types of all its read models."""

    def __init__(
        self,
        spark: SparkSession,
        place: QueryEndpoints,
        schemas: KnownSchemas,
        pace: TriggerSettings,
        consumer: Consumer,
        readers: tuple[RecordSchema, ...],
    ) -> None:
        super().__init__(place.sink_topic, spark, place, schemas, pace, consumer)
        self._readers = readers

    def _records(self, source: KafkaSource) -> DataFrame:
        events = EventColumns(self._readers, self._schemas.schema_ids).of(source.read(self._spark))
        newest = newest_offsets(self._consumer, self._place.sink_topic, self._place.partitions)
        LOG.info("dead dead_letter_records of %s are written up to %s", source.topic, newest)
        return dead_letter_records(source.topic, dead_letters(events).where(_is_new(newest)))


def dead_letter_records(source_topic: str, records: DataFrame) -> DataFrame:
    """Return bad records as Kafka records: key and value as they were, the reason and the origin as headers of text."""
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
    """Return source partition -> source offset of its newest dead letter, where there is one."""
    newest: dict[int, int] = {}
    for partition in range(partitions):
        for message in read_tail(consumer, topic, partition, records=1):
            headers = dict(message.headers() or [])
            newest[partition] = int(headers[SOURCE_OFFSET_HEADER] or -1)
    return newest


def _is_new(newest: dict[int, int]) -> Column:
    written = [when(col("partition") == partition, lit(offset)) for partition, offset in newest.items()]
    return col("offset") > coalesce(*written, lit(-1))
