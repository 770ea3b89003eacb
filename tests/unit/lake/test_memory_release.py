"""The job server returns what a job leaves in memory; the stream driver's Java options stay those of its ahead-of-time cache."""

from typing import Any
from unittest.mock import Mock

from include.settings import Settings
from include.spark.lake_config import SHRINK_HEAP, lake_config
from include.spark.stream_config import JAVA_OPTIONS, stream_config
from spark_jobs.runtime.lake_job import COLLECTIONS, release_memory

OPTIONS = "spark.driver.extraJavaOptions"


def test_the_heap_is_collected_until_it_has_shrunk() -> None:
    spark: Any = Mock()

    release_memory(spark)

    collect = spark.sparkContext._jvm.java.lang.System.gc
    assert collect.call_count == COLLECTIONS


def test_only_the_lakes_jvm_may_shrink_its_heap() -> None:
    settings = Settings.of()

    assert lake_config(settings.lake)[OPTIONS] == f"{JAVA_OPTIONS} {SHRINK_HEAP}"
    assert stream_config(settings)[OPTIONS] == JAVA_OPTIONS
