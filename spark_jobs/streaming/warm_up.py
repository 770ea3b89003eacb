"""Has the JVM of a standby driver load and compile what its queries need, by running them for seconds without writing a record."""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit, rand

from include.kafka.log_reading import end_offsets
from include.kafka.schema_ids import SchemaIds
from include.position import Offsets
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.query_start import start_real_time

LOG = logging.getLogger(__name__)

# The newest records of each partition.
RECORDS = 5_000
RUN_S = 6.0
# A commit has code of its own: planning, and what begins a batch.
COMMIT_INTERVAL_S = 1
POLL_S = 0.5


def warm_up(spark: SparkSession, consumer: Consumer, specs: Iterable[QuerySpec]) -> bool:
    """Run each query in real time on the newest records, with a checkpoint of its own; a failure costs only the warmth. Returns whether it has.

    Only with a local master: a cluster's workers cannot reach a checkpoint on this machine.
    """
    if not str(spark.sparkContext.master).startswith("local"):
        return False
    for spec in specs:
        scratch = tempfile.mkdtemp(prefix="warm-up-", dir=os.environ.get("SPARK_LOCAL_DIRS"))
        try:
            _run(spark, consumer, spec, Path(scratch))
        except Exception as error:  # noqa: BLE001 - any error of Spark or Kafka: the query itself handles it when it starts
            LOG.warning("query %s could not be warmed up: %s", spec.name, error)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return True


def _run(spark: SparkSession, consumer: Consumer, spec: QuerySpec, scratch: Path) -> None:
    endpoints = spec.endpoints
    ends = Offsets.of_ends(end_offsets(consumer, endpoints.source_topic, endpoints.partitions))
    newest = Offsets({partition: max(0, end - RECORDS) for partition, end in ends.items()})

    def no_records(source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        # Spark does not know that this is never true: it computes every record, and writes none.
        return spec.records(source, schema_ids).where(rand() < lit(0.0))

    trial = replace(
        spec,
        name=f"warm-up of {spec.name}",
        endpoints=replace(endpoints, checkpoint=str(scratch / "checkpoint")),
        records=no_records,
        real_time_source=(
            *spec.real_time_source,
            ("startingOffsets", newest.for_spark(endpoints.source_topic)),
        ),
    )
    query = start_real_time(spark, trial, spec.schemas.schema_ids, COMMIT_INTERVAL_S)
    try:
        end_s = time.monotonic() + RUN_S
        while query.isActive and time.monotonic() < end_s:
            time.sleep(POLL_S)
        error = query.exception()
        if error is not None:
            raise error
    finally:
        query.stop()
