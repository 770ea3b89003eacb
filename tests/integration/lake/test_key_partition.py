"""Spark computes the same partition for a key as Kafka's clients."""

import random

from confluent_kafka import murmur2
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from spark_jobs.folding.event_rules import partition_of_key


def test_spark_computes_the_partition_of_kafkas_clients(lake_spark: SparkSession) -> None:
    generator = random.Random(1)
    keys = ["".join(generator.choices("aé漢/9 z", k=length)) for length in range(1, 60)]
    frame = lake_spark.createDataFrame([(key,) for key in keys], "key string")

    found = frame.select("key", partition_of_key(col("key").cast("binary"), 7).alias("partition")).collect()

    assert {row.key: row.partition for row in found} == {key: murmur2(key.encode(), 7) for key in keys}
