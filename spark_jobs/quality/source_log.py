"""The source topic of a version, as a check reads it: its ends, what it has lost, and the events that the version folds."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer
from include.position import Offsets
from include.settings import Settings
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.expressions.columns import column_of
from spark_jobs.folding.replay import IdsOf, replayed_events, source_ends, with_needed_schema_ids
from spark_jobs.runtime.session import session_settings

T = TypeVar("T")
# The read model's key, beside the columns of an event.
MODEL_KEY = "record:model_key"
REQUEST_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class SourceLog:
    """The source topic of a version, and the events that the version folds.

    model: with the source and the start of the version. revision: of its fold.
    """

    spark: SparkSession
    settings: Settings
    model: ReadModel
    revision: int

    def ends(self) -> Offsets:
        """Return the current end offset of each partition; raises KafkaUnavailableError."""
        return source_ends(self.settings.kafka.bootstrap_servers, self.model.source_topic)

    def lost(self, partitions: int) -> dict[int, int]:
        """Return partition -> first offset still in the log, for partitions that have lost the first events that the version folds."""
        consumer = log_consumer(self.settings.kafka.bootstrap_servers)
        try:
            lost = lost_partitions(consumer, self.model.source_topic, partitions)
        finally:
            consumer.close()
        return {p: first for p, first in lost.items() if first > self.model.starts.of(p)}

    def age_beyond_s(self, offsets: Offsets, ends: Offsets) -> float:
        """Return the age of the oldest event at or after `offsets` and below `ends`; 0 if there is none."""
        consumer = log_consumer(self.settings.kafka.bootstrap_servers)
        try:
            return age_beyond_s(consumer, self.model.source_topic, offsets, ends)
        finally:
            consumer.close()

    def read(self, job: Callable[[DataFrame], T], until: Offsets, since: Offsets | None = None) -> T:
        """Run a job on the events up to some end offsets, from the first one that counts or from `since`; return its result.

        Each event has MODEL_KEY, too. The job is repeated if the log has schema ids that are not the topic's.
        """

        def run(ids_of: IdsOf) -> T:
            events = replayed_events(
                self.spark, self.settings, self.model, until, since, revision=self.revision, ids_of=ids_of
            )
            return job(events.withColumn(MODEL_KEY, column_of(self.model.key).cast("string")))

        with session_settings(self.spark, DECODE_ONCE):
            return with_needed_schema_ids(run)


def lost_partitions(consumer: Consumer, topic: str, partitions: int) -> dict[int, int]:
    """Return partition -> first offset that still exists, for partitions whose first events were deleted."""
    starts = {
        partition: consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=REQUEST_TIMEOUT_S
        )[0]
        for partition in range(partitions)
    }
    return {partition: start for partition, start in starts.items() if start > 0}


def age_beyond_s(
    consumer: Consumer, topic: str, offsets: Mapping[int, int], ends: Mapping[int, int]
) -> float:
    """Return the age of the oldest event at or after `offsets` and below `ends`, by append time; 0 if there is none.

    Raises KafkaUnavailableError when the broker does not respond.
    """
    appended_ms = []
    for partition, end in ends.items():
        first = offsets.get(partition, 0)
        if first >= end:
            continue
        consumer.assign([TopicPartition(topic, partition, first)])
        message = consumer.poll(REQUEST_TIMEOUT_S)
        consumer.unassign()
        if message is None:
            message_text = (
                f"Cannot read {topic}/{partition} at offset {first}. Hint: check that the broker is up."
            )
            raise KafkaUnavailableError(message_text)
        # There may be no event below the end, but only markers of transactions.
        if message.error() is None and (message.offset() or 0) < end:
            appended_ms.append(message.timestamp()[1])
    return max(0.0, time.time() - min(appended_ms) / 1000) if appended_ms else 0.0
