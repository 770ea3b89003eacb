"""Runs a Spark application on the lake: its log, its end with its launcher, and its session.

The job server keeps one Spark context: every job gets a session of its own from it, leaves nothing behind, and returns its memory.
"""

import ctypes
import gc
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from include.errors import FoldlakeError
from include.observability.logs import configure_logs
from include.process import die_with_parent
from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime.session import spark_session

_kept: list[SparkSession] = []
LOG = logging.getLogger("foldlake.lake")
# The first collection ends with the size of the heap that the job needed; the second one shrinks it to what is left.
COLLECTIONS = 2


def keep_session(spark: SparkSession) -> None:
    """Run this process's jobs in the Spark context of this session from now on."""
    _kept[:] = [spark]


def kept_session() -> SparkSession | None:
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


def run_lake_job(name: str, job: Callable[[SparkSession, Settings], None]) -> None:
    """Run a job under spark-submit. A FoldlakeError ends the process with status 1 and its message as one log line."""
    die_with_parent()
    settings = Settings()
    configure_logs(settings.log.format, "lake jobs")
    try:
        with lake_session(name, settings) as spark:
            job(spark, settings)
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - a traceback would add nothing
        sys.exit(1)


@contextmanager
def lake_session(name: str, settings: Settings) -> Iterator[SparkSession]:
    """Yield the session of one job: in the job server a new one in its Spark context, else one with a context of its own."""
    kept = kept_session()
    if kept is not None:
        with session_of_job(kept) as spark:
            yield spark
        return
    spark = spark_session(f"foldlake-{name}", lake_config(settings.lake))
    try:
        yield spark
    finally:
        spark.stop()


def release_memory(spark: SparkSession) -> None:
    """Release the memory of a job that has ended; takes less than a second.

    The JVM needs the options of SHRINK_HEAP (include/spark/lake_config.py): without them it keeps a heap that it has once used.
    """
    jvm = spark.sparkContext._jvm  # noqa: SLF001 - Spark has no other way to it from Python
    if jvm is not None:
        for _ in range(COLLECTIONS):
            jvm.java.lang.System.gc()
    gc.collect()
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    _trim_heap()


def _trim_heap() -> None:
    """Have the C library return its free memory, where it can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
