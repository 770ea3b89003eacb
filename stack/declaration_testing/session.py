"""A Spark session in the process of a test."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime.session import SMALL_DATA, spark_session
from stack.tools import Tools


@contextmanager
def declaration_session() -> Iterator[SparkSession]:
    """Yield a session with the prepared Java and Spark, which ends with the block. It takes about ten seconds to start."""
    settings = Settings()
    tools = Tools(settings.tools)
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ |= {
            "JAVA_HOME": str(tools.java_home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_DIRS": scratch,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        os.environ.pop("SPARK_HOME", None)
        try:
            config = lake_config(settings.lake) | SMALL_DATA
            spark = spark_session("foldlake-declaration", config, master="local[1]", jars=tools.jars("lake"))
            yield spark
            spark.stop()
            _end_jvm()
        finally:
            os.environ.clear()
            os.environ.update(before)


def _end_jvm() -> None:
    """Stop the JVM: after `stop`, a session leaves it running until this process ends."""
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no other way
    if gateway is not None:
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as above
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)
