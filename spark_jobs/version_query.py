"""The running query of one version of a read model: catches up in large batches, then goes on in real-time mode."""

import logging
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from include.kafka_log import end_offsets
from include.read_model import ReadModel
from spark_jobs.checkpoint import committed_offsets
from spark_jobs.fold_query import KafkaSource, changelog_stream
from spark_jobs.known_schemas import KnownSchemas
from spark_jobs.supervised_query import Phase, Place, SupervisedQuery

LOG = logging.getLogger(__name__)

# Large batches want throughput, single events want to leave at once.
CATCH_UP_PRODUCER = {"kafka.linger.ms": "20", "kafka.batch.size": "262144", "kafka.compression.type": "lz4"}
REAL_TIME_PRODUCER = {"kafka.linger.ms": "0"}


@dataclass(frozen=True)
class FoldPlan:
    """What one version's query folds, and how eagerly.

    catch_up_threshold_events: further behind than this, it starts by catching up.
    catch_up_batch_events: events in one batch of catching up; bounds memory, and is how often progress shows.
    real_time_interval_s: how often real-time mode commits its checkpoint.
    """

    model: ReadModel
    fold_revision: int
    partitions: int
    changelog_topic: str
    state_schema_id: int
    catch_up_threshold_events: int
    catch_up_batch_events: int
    real_time_interval_s: int


class VersionQuery(SupervisedQuery):
    """One version's query."""

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        place: Place,
        schemas: KnownSchemas,
        plan: FoldPlan,
        consumer: Consumer,
    ) -> None:
        super().__init__(name, spark, place, schemas)
        self.plan = plan
        self._consumer = consumer

    def events_behind(self) -> int:
        """Return how many events lie between the checkpoint and the end of the source topic."""
        place = self._place
        ends = end_offsets(self._consumer, place.source_topic, self.plan.partitions)
        self.committed_offsets = committed_offsets(self._spark, place.checkpoint, place.source_topic)
        return sum(end - self.committed_offsets.get(partition, 0) for partition, end in enumerate(ends))

    def _start(self) -> tuple[StreamingQuery, Phase]:
        behind = self.events_behind()
        if behind > self.plan.catch_up_threshold_events:
            LOG.info("query %s is %d events behind: catching up", self.name, behind)
            return self._catch_up(), Phase.CATCHING_UP
        return self._real_time(), Phase.REAL_TIME

    def _catch_up(self) -> StreamingQuery:
        batch = (("maxOffsetsPerTrigger", str(self.plan.catch_up_batch_events)),)
        writer = self._writer(batch, CATCH_UP_PRODUCER)
        return writer.trigger(availableNow=True).start()

    def _real_time(self) -> StreamingQuery:
        writer = self._writer((), REAL_TIME_PRODUCER)
        # Types are checked against the lake's PySpark, which does not have this trigger yet.
        real_time: Any = writer.trigger
        query: StreamingQuery = real_time(realTime=f"{self.plan.real_time_interval_s} seconds").start()
        return query

    def _writer(
        self, source_options: tuple[tuple[str, str], ...], producer: dict[str, str]
    ) -> DataStreamWriter:
        plan, place = self.plan, self._place
        records = changelog_stream(
            self._spark,
            plan.model,
            plan.fold_revision,
            KafkaSource(place.bootstrap_servers, place.source_topic, source_options),
            self._schemas.schema_ids,
            plan.state_schema_id,
        )
        return (
            records.writeStream.format("kafka")
            .queryName(self.name)
            .outputMode("update")
            .option("kafka.bootstrap.servers", place.bootstrap_servers)
            .option("topic", plan.changelog_topic)
            .option("checkpointLocation", place.checkpoint)
            .options(**producer)
        )
