"""Runs a Spark application on the lake: sets up logging, ends it with its launcher, and stops the session."""

import logging
import sys
from collections.abc import Callable

from pyspark.sql import SparkSession

from include.errors import FoldlakeError
from include.parent_death import die_with_parent
from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime.job_logging import configure_logging
from spark_jobs.runtime.session import spark_session

LOG = logging.getLogger("foldlake.lake")


def run_lake_job(name: str, job: Callable[[SparkSession, Settings], None]) -> None:
    """Run a job under spark-submit. A FoldlakeError ends the process with status 1 and its message as one log line."""
    configure_logging()
    die_with_parent()
    settings = Settings()
    spark = spark_session(f"foldlake-{name}", lake_config(settings.lake))
    try:
        job(spark, settings)
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - a traceback would add nothing
        sys.exit(1)
    finally:
        spark.stop()
