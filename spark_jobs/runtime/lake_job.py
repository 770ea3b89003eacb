"""What every application on the lake has in common: it dies with its launcher, logs, has a session, and ends it."""

import logging
import sys
from collections.abc import Callable

from pyspark.sql import SparkSession

from include.errors import FoldlakeError
from include.parent_death import die_with_parent
from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime.driver_log import log_driver
from spark_jobs.runtime.session import spark_session

LOG = logging.getLogger("foldlake.lake")


def run_lake_job(name: str, job: Callable[[SparkSession, Settings], None]) -> None:
    """Run a job under spark-submit and end the process: with status 1 and one line when Foldlake decided to stop."""
    log_driver()
    die_with_parent()
    settings = Settings()
    spark = spark_session(f"foldlake-{name}", lake_config(settings))
    try:
        job(spark, settings)
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is all that is to be said
        sys.exit(1)
    finally:
        spark.stop()
