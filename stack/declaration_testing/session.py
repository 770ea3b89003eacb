"""A Spark session of the lake in the process of a test."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime.session import SMALL_DATA, spark_session
from stack.tools import Tools

# A test plans much and computes few rows: C2 took almost half of the processor time to compile, and no test was faster.
QUICK_JIT = "-XX:TieredStopAtLevel=1"


@contextmanager
def declaration_session() -> Iterator[SparkSession]:
    """Yield a session for the events of a test, which ends with the block. It takes about ten seconds to start."""
    with tempfile.TemporaryDirectory() as scratch, lake_session(Settings(), Path(scratch), cores=1) as spark:
        yield spark


@contextmanager
def lake_session(settings: Settings, scratch: Path, cores: int) -> Iterator[SparkSession]:
    """Yield a session with the lake's configuration and the prepared Java and Spark, for small data; its JVM ends with the block.

    scratch: for Spark's temporary files.
    """
    tools = Tools(settings.tools)
    before = dict(os.environ)
    os.environ |= {
        "JAVA_HOME": str(tools.java_home),
        # As the launcher of the jobs does: staging decodes in Python workers.
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(scratch),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    # Another installation on the machine.
    os.environ.pop("SPARK_HOME", None)
    try:
        config = lake_config(settings.lake) | SMALL_DATA
        config["spark.driver.extraJavaOptions"] += f" {QUICK_JIT}"
        config["spark.driver.extraClassPath"] = ":".join(map(str, tools.hadoop_client))
        spark = spark_session("foldlake-tests", config, master=f"local[{cores}]", jars=tools.jars("lake"))
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
