"""Kafka and the registry once more, for tests that make up read models, and a Spark session of the lake for the jobs' functions."""

from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from include.settings import Settings
from include.spark.lake_config import lake_config
from spark_jobs.runtime.session import spark_session
from stack.tools import Tools
from tests.support.temporary_stack import temporary_stack


@pytest.fixture(scope="package")
def settings(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Settings of a stack that no stream driver follows."""
    session = request.session
    with temporary_stack(("kafka", "registry"), keep_home=lambda: session.testsfailed > 0) as running:
        yield running


@pytest.fixture(scope="package")
def lake_spark(settings: Settings) -> Iterator[SparkSession]:
    """One Spark session of the lake in the tests' own process: the jobs' functions are called with it."""
    tools = Tools(settings)
    with pytest.MonkeyPatch.context() as environment:
        # Where Spark finds its Java, and itself: not where the user may have another one.
        environment.setenv("JAVA_HOME", str(tools.java_home))
        environment.delenv("SPARK_HOME", raising=False)
        environment.setenv("SPARK_LOCAL_DIRS", str(settings.home / "spark"))
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        # This JVM lives for long enough to be compiled well.
        environment.delenv("JDK_JAVA_OPTIONS")
        spark = spark_session(
            "foldlake-tests", lake_config(settings), master="local[2]", jars=tools.jars("lake")
        )
        yield spark
        spark.stop()
        end_jvm()


def end_jvm() -> None:
    """End the JVM that a stopped session leaves behind, with its memory, for as long as this process lives."""
    gateway = SparkContext._gateway
    assert gateway is not None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(30)
