"""The one real stack that all integration tests of a run share."""

from collections.abc import Iterator

import pytest

from include.settings import Settings
from stack.stack import start
from stack.temporary import temporary_stack
from tests.integration.stream_process import make_topics


@pytest.fixture(scope="session")
def settings(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Settings of a stack with Kafka and the schema registry up, on free ports, in a directory of its own."""
    session = request.session
    with temporary_stack(("kafka", "registry"), keep_home=lambda: session.testsfailed > 0) as running:
        yield running


@pytest.fixture(scope="session")
def query_nodes(settings: Settings) -> Settings:
    """The same stack with both query nodes up."""
    start(settings, only=("query_nodes",))
    return settings


@pytest.fixture(scope="session")
def airflow(settings: Settings) -> Settings:
    """The same stack with Airflow, and so the stream driver, up."""
    start(settings, only=("airflow",))
    return settings


@pytest.fixture(scope="session")
def full_stack(query_nodes: Settings, airflow: Settings) -> Settings:
    """The same stack with everything up."""
    assert query_nodes is airflow
    return airflow


@pytest.fixture(scope="session")
def stream_stack(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Kafka and the schema registry once more, for tests that run stream drivers of their own on them, one at a time."""
    session = request.session
    with temporary_stack(
        ("kafka", "registry"),
        keep_home=lambda: session.testsfailed > 0,
        stream_real_time_interval_s=10,
        stream_catch_up_threshold_events=5_000,
        stream_catch_up_batch_events=4_000,
        stream_spare_queries=0,
    ) as running:
        make_topics(running, "balance")
        yield running
