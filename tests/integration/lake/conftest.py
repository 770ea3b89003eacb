"""A home for tests that declare their own read models, and a Spark session for the functions of the lake jobs."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from include.settings import Settings
from stack.declaration_testing.session import lake_session
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
    with lake_session(settings, settings.home / "spark", cores=2) as spark:
        yield spark
