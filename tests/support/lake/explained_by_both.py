"""Explains a key with both engines, which must find the same."""

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import SparkSession

from include.declarations.read_model import ReadModel
from include.replay.explain.__main__ import explanation
from include.settings import Settings
from include.versions.explanation import Explanation
from include.versions.key_explanation import VersionsOfKey
from spark_jobs import explain as spark_job


def explained_by_both(
    spark: SparkSession,
    settings: Settings,
    model: ReadModel,
    key: str,
    number: int | None,
    limit: int,
    masked: Iterable[str],
) -> Explanation:
    """Explain with Spark and with DuckDB, and return the explanation of Spark. The arguments are those of the Spark job's `explanation`."""
    found = spark_job.explanation(spark, settings, model, key, number, limit, masked)
    versions = VersionsOfKey.of(settings.kafka_connection, model, number)
    other = explanation(settings, model, key, versions, limit, masked)
    assert replace(other, explained_at=found.explained_at) == found
    return found
