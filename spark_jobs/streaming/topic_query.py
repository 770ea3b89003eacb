"""A supervised query from one topic to another: catches up in large batches, then goes on in real-time mode."""

import logging
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from include.kafka.log_reading import end_offsets
from include.settings import Settings
from spark_jobs.folding.fold_query import KafkaSource
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.runtime.checkpoint import committed_offsets, remove_uncommitted
from spark_jobs.streaming.supervised_query import Phase, QueryEndpoints, SupervisedQuery

LOG = logging.getLogger(__name__)

# Large batches want throughput, single events want to leave at once.
CATCH_UP_PRODUCER = {"kafka.linger.ms": "20", "kafka.batch.size": "262144", "kafka.compression.type": "lz4"}
REAL_TIME_PRODUCER = {"kafka.linger.ms": "0"}


@dataclass(frozen=True)
class TriggerSettings:
    """How eagerly a query reads.

    catch_up_threshold_events: further behind than this, it starts by catching up.
    catch_up_batch_events: events in one batch of catching up; bounds memory, and is how often progress shows.
    real_time_interval_s: how often real-time mode commits its checkpoint.
    """

    catch_up_threshold_events: int
    catch_up_batch_events: int
    real_time_interval_s: int

    @classmethod
    def of(cls, settings: Settings) -> "TriggerSettings":
        """Return the pace that the settings ask for."""
        return cls(
            settings.stream.catch_up_threshold_events,
            settings.stream.catch_up_batch_events,
            settings.stream.real_time_interval_s,
        )


class TopicQuery(SupervisedQuery):
    """A query that reads `place.source_topic` and appends its records to `place.sink_topic`."""

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        place: QueryEndpoints,
        schemas: KnownSchemas,
        pace: TriggerSettings,
        consumer: Consumer,
    ) -> None:
        super().__init__(name, spark, place, schemas)
        self._pace = pace
        self._consumer = consumer

    @abstractmethod
    def _records(self, source: KafkaSource) -> DataFrame:
        """Return the records for the sink, from those of the source."""

    def events_behind(self) -> int:
        """Return how many events lie between the checkpoint and the end of the source topic."""
        place = self._place
        ends = end_offsets(self._consumer, place.source_topic, place.partitions)
        self.committed_offsets = committed_offsets(self._spark, place.checkpoint, place.source_topic)
        return sum(end - self.committed_offsets.get(partition, 0) for partition, end in enumerate(ends))

    def _start(self) -> tuple[StreamingQuery, Phase]:
        if remove_uncommitted(self._spark, self._place.checkpoint):
            LOG.info("query %s begins at the first event: it was killed before its first commit", self.name)
        return self._start_query()

    def _start_query(self) -> tuple[StreamingQuery, Phase]:
        behind = self.events_behind()
        if behind > self._pace.catch_up_threshold_events:
            LOG.info("query %s is %d events behind: catching up", self.name, behind)
            return self._catch_up(), Phase.CATCHING_UP
        return self._real_time(), Phase.REAL_TIME

    def _catch_up(self) -> StreamingQuery:
        batch = (("maxOffsetsPerTrigger", str(self._pace.catch_up_batch_events)),)
        return self._writer(batch, CATCH_UP_PRODUCER).trigger(availableNow=True).start()

    def _real_time(self) -> StreamingQuery:
        # Types are checked against the lake's PySpark, which does not have this trigger yet.
        trigger: Any = self._writer((), REAL_TIME_PRODUCER).trigger
        query: StreamingQuery = trigger(realTime=f"{self._pace.real_time_interval_s} seconds").start()
        return query

    def _writer(
        self, source_options: tuple[tuple[str, str], ...], producer: dict[str, str]
    ) -> DataStreamWriter:
        place = self._place
        source = KafkaSource(place.bootstrap_servers, place.source_topic, source_options)
        return (
            self._records(source)
            .writeStream.format("kafka")
            .queryName(self.name)
            .outputMode("update")
            .option("kafka.bootstrap.servers", place.bootstrap_servers)
            .option("topic", place.sink_topic)
            .option("checkpointLocation", place.checkpoint)
            .options(**producer)
        )
