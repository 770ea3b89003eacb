"""The shared stack with everything up. These tests come last: what is started here stays up to the end of the run."""

import pytest

from include.settings import Settings
from stack.lifecycle import start


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
