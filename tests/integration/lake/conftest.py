"""A home for tests that declare their own read models, and a Spark session for the functions of the lake jobs."""

import sys
from collections.abc import Callable, Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime.session import SMALL_DATA, spark_session
from stack.tools import Tools
from tests.support.temporary_stack import sharing_servers


@pytest.fixture(scope="package")
def settings(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home on the shared Kafka and schema registry that no stream driver reads."""
    # The tables have a few hundred rows: half as many tasks as by default, but still more than one.
    with sharing_servers(servers, keep_home, lake_shuffle_partitions=2) as home:
        yield home


@pytest.fixture(scope="package")
def lake_spark(settings: Settings) -> Iterator[SparkSession]:
    """A Spark session of the lake in the test process, with which the tests call the jobs' functions."""
    tools = Tools(settings.tools)
    with pytest.MonkeyPatch.context() as environment:
        # Use the prepared Java and Spark, not another installation on the machine.
        environment.setenv("JAVA_HOME", str(tools.java_home))
        environment.delenv("SPARK_HOME", raising=False)
        # As the launcher of the jobs does: staging decodes in Python workers.
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("SPARK_LOCAL_DIRS", str(settings.home / "spark"))
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # This JVM runs long enough to benefit from the C2 compiler.
        environment.delenv("JDK_JAVA_OPTIONS")
        # The tables are tiny.
        config = lake_config(settings.lake) | SMALL_DATA
        spark = spark_session("foldlake-tests", config, master="local[2]", jars=tools.jars("lake"))
        yield spark
        spark.stop()
        end_jvm()


def end_jvm() -> None:
    """Stop the JVM: after `stop`, a session leaves it running until this process ends."""
    gateway = SparkContext._gateway
    assert gateway is not None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
