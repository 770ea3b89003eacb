"""Runs a Spark application on the lake: sets up logging, ends it with its launcher, and gives it a session."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from include.errors import FoldlakeError
from include.process import die_with_parent
from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime import kept_session
from spark_jobs.runtime.job_logging import configure_logging
from spark_jobs.runtime.session import spark_session

LOG = logging.getLogger("foldlake.lake")


def run_lake_job(name: str, job: Callable[[SparkSession, Settings], None]) -> None:
    """Run a job under spark-submit. A FoldlakeError ends the process with status 1 and its message as one log line."""
    configure_logging()
    die_with_parent()
    settings = Settings()
    try:
        with lake_session(name, settings) as spark:
            job(spark, settings)
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - a traceback would add nothing
        sys.exit(1)


@contextmanager
def lake_session(name: str, settings: Settings) -> Iterator[SparkSession]:
    """Yield the session of one job: in the job server a new one in its Spark context, else one with a context of its own."""
    kept = kept_session.current()
    if kept is not None:
        with kept_session.session_of_job(kept) as spark:
            yield spark
        return
    spark = spark_session(f"foldlake-{name}", lake_config(settings.lake))
    try:
        yield spark
    finally:
        spark.stop()
