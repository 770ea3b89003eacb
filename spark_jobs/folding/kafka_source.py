"""Reads a topic with Spark's Kafka source: as a stream, or a part of it in one batch.

The stream's and the lake's environment both have what this module imports.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from include.position import Offsets
from include.settings import KafkaConnection
from include.spark.kafka_clients import spark_options

# A read consists of about this many tasks, or more, unless they would be tiny or huge: progress counts tasks that have ended.
TASKS = 16
FEWEST_PER_TASK, MOST_PER_TASK = 5_000, 250_000


@dataclass(frozen=True)
class KafkaSource:
    """Where events are read from: brokers, topic, and further options of Spark's Kafka source."""

    kafka: KafkaConnection
    topic: str
    options: tuple[tuple[str, str], ...] = ()

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the topic's records as a stream, from the first offset or from the query's checkpoint."""
        reader = (
            spark.readStream.format("kafka")
            .options(**spark_options(self.kafka))
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
            # Events that retention has deleted must fail the query, never be skipped.
            .option("failOnDataLoss", "true")
            # Never read events of an aborted transaction.
            .option("kafka.isolation.level", "read_committed")
            # The broker's collection of its clients' metrics, which nobody reads.
            .option("kafka.enable.metrics.push", "false")
        )
        return reader.options(**dict(self.options)).load()


def topic_records(
    spark: SparkSession, kafka: KafkaConnection, topic: str, until: Offsets, since: Offsets | None = None
) -> DataFrame:
    """Return a topic's records up to these end offsets, as Spark's Kafka source has them.

    Starts at the first record, or at the offsets in `since`; a partition whose offset is beyond its end yields no records.
    """
    return (
        spark.read.format("kafka")
        .options(**spark_options(kafka))
        .option("subscribe", topic)
        .option("startingOffsets", "earliest" if since is None else _starts(topic, since, until))
        # Fixed ends: otherwise Spark reads up to the ends at the time of planning.
        .option("endingOffsets", until.for_spark(topic))
        .option("failOnDataLoss", "true")
        .option("maxRecordsPerPartition", str(records_per_task((since or Offsets()).events_until(until))))
        .option("kafka.isolation.level", "read_committed")
        .load()
    )


def records_per_task(records: int) -> int:
    """Return how many records a task reads at most. Small tasks also keep a core from waiting for another one's long task."""
    return min(max(records // TASKS, FEWEST_PER_TASK), MOST_PER_TASK)


def _starts(topic: str, since: Offsets, until: Offsets) -> str:
    """Return the starting offsets in the form that Spark's Kafka source requires: one per partition, none beyond its end."""
    return Offsets({p: min(since.of(p), end) for p, end in until.items()}).for_spark(topic)
