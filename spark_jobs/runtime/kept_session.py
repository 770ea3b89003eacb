"""The Spark session that the job server keeps: every job gets a session of its own from it, and leaves nothing behind."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

_kept: list[SparkSession] = []


def keep(spark: SparkSession) -> None:
    """Run this process's jobs in the Spark context of this session from now on."""
    _kept[:] = [spark]


def current() -> SparkSession | None:
    """Return the session that this process keeps; None in a process that runs one job."""
    return _kept[0] if _kept else None


@contextmanager
def session_of_job(kept: SparkSession) -> Iterator[SparkSession]:
    """Yield a session with its own settings and views. At the end, stop its queries, and drop what is cached."""
    _forget_tables(kept)
    spark = kept.newSession()
    try:
        yield spark
    finally:
        for query in spark.streams.active:
            query.stop()
        kept.catalog.clearCache()


def _forget_tables(spark: SparkSession) -> None:
    """Have Delta read its tables' logs again: another process may have replaced a table since the last job."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - Delta has no other way to it from Python
    if jvm is not None:
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
