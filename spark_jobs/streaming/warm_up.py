"""Has the JVM of a standby driver load and compile what its queries need, by running their computations on a few records."""

import logging
from collections.abc import Iterable

from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from include.kafka.log_reading import end_offsets
from include.position import Offsets
from spark_jobs.folding.topic_records import topic_records
from spark_jobs.streaming.query_spec import QuerySpec

LOG = logging.getLogger(__name__)

# The newest records of each partition.
RECORDS = 500
ROUNDS = 3


def warm_up(spark: SparkSession, consumer: Consumer, specs: Iterable[QuerySpec]) -> None:
    """Run the computation of each query as a batch, and discard its result; a failure costs only the warmth."""
    for spec in specs:
        try:
            for _ in range(ROUNDS):
                _run(spark, consumer, spec)
        except Exception as error:  # noqa: BLE001 - any error of Spark or Kafka: the query itself handles it when it starts
            LOG.warning("the computation of %s could not be warmed up: %s", spec.name, error)


def _run(spark: SparkSession, consumer: Consumer, spec: QuerySpec) -> None:
    endpoints = spec.endpoints
    ends = Offsets.of_ends(end_offsets(consumer, endpoints.source_topic, endpoints.partitions))
    newest = Offsets({partition: max(0, end - RECORDS) for partition, end in ends.items()})
    source = topic_records(spark, endpoints.bootstrap_servers, endpoints.source_topic, ends, newest)
    records = spec.records(source, spec.schemas.schema_ids)
    records.write.format("noop").mode("overwrite").save()
