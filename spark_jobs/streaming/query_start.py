"""Starts the Spark query of a specification: in large batches to catch up, in real-time mode, or in small batches."""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from include.kafka.schema_ids import SchemaIds
from include.spark.kafka_clients import spark_options
from spark_jobs.folding.kafka_source import KafkaSource
from spark_jobs.streaming.query_spec import QuerySpec

# After how many commits the state has a snapshot. A restart applies the records of all commits after it, one by one: each commit in real
# time has those of a whole minute. Batches commit at least every second.
COMMITS_PER_SNAPSHOT_SETTING = "spark.sql.streaming.stateStore.minDeltasForSnapshot"
REAL_TIME_COMMITS_PER_SNAPSHOT, BATCHES_PER_SNAPSHOT = 1, 10
BATCH_PRODUCER = {"kafka.linger.ms": "20", "kafka.batch.size": "262144", "kafka.compression.type": "lz4"}


def start_catch_up(spark: SparkSession, spec: QuerySpec, schema_ids: SchemaIds) -> StreamingQuery:
    """Start reading in batches; the query ends when it reaches the current end of the source topic."""
    return _batch_writer(spark, spec, schema_ids).trigger(availableNow=True).start()


def start_batches(spark: SparkSession, spec: QuerySpec, schema_ids: SchemaIds) -> StreamingQuery:
    """Start reading in small batches; the query runs until it fails or is stopped."""
    interval = f"{spec.triggers.batch_interval_ms} milliseconds"
    return _batch_writer(spark, spec, schema_ids).trigger(processingTime=interval).start()


def start_real_time(
    spark: SparkSession, spec: QuerySpec, schema_ids: SchemaIds, commit_interval_s: int
) -> StreamingQuery:
    """Start reading in real-time mode; the query runs until it fails or is stopped."""
    pace = spec.triggers.pace
    spark.conf.set(COMMITS_PER_SNAPSHOT_SETTING, REAL_TIME_COMMITS_PER_SNAPSHOT)
    source = pace.source_options() | dict(spec.real_time_source)
    # Types are checked against the lake's PySpark, which does not have this trigger yet.
    trigger: Any = _writer(spark, spec, schema_ids, source, pace.sink_options()).trigger
    query: StreamingQuery = trigger(
        realTime=f"{spec.commit_interval_ms(commit_interval_s)} milliseconds"
    ).start()
    return query


def analyse(spark: SparkSession, spec: QuerySpec, schema_ids: SchemaIds) -> None:
    """Have Spark analyse the query, without starting it; raises the error of Spark if it does not accept the query."""
    _batch_writer(spark, spec, schema_ids)


def _batch_writer(spark: SparkSession, spec: QuerySpec, schema_ids: SchemaIds) -> DataStreamWriter:
    spark.conf.set(COMMITS_PER_SNAPSHOT_SETTING, BATCHES_PER_SNAPSHOT)
    # All partitions up to their ends: a watermark that moves between two batches would be ahead of a partition that is read more slowly.
    batch = {} if spec.has_watermark else {"maxOffsetsPerTrigger": str(spec.triggers.catch_up_batch_events)}
    return _writer(spark, spec, schema_ids, batch, BATCH_PRODUCER)


def _writer(
    spark: SparkSession,
    spec: QuerySpec,
    schema_ids: SchemaIds,
    source_options: dict[str, str],
    producer: dict[str, str],
) -> DataStreamWriter:
    endpoints = spec.endpoints
    if spec.shuffle_partitions:
        # A query reads this setting when it starts; afterwards its checkpoint fixes the number.
        spark.conf.set("spark.sql.shuffle.partitions", str(spec.shuffle_partitions))
    topic = endpoints.source_topic
    starts = {"startingOffsets": spec.starts.for_spark(topic)} if spec.starts else {}
    source = KafkaSource(endpoints.kafka, topic, tuple((starts | source_options).items()))
    records = spec.records(source.read(spark), schema_ids)
    # A query whose records name their topics also writes dead letters.
    topics = {} if "topic" in records.columns else {"topic": endpoints.sink_topic}
    return (
        records.writeStream.format("kafka")
        .queryName(spec.name)
        .outputMode("update")
        .options(**spark_options(endpoints.kafka))
        .option("kafka.enable.metrics.push", "false")
        .option("checkpointLocation", endpoints.checkpoint)
        .options(**(topics | producer | dict(spec.sink)))
    )
