"""The shared stack with everything up. These tests come last: what is started here stays up to the end of the run."""

import pytest

from include.settings import Settings
from stack.lifecycle import start


@pytest.fixture(scope="session")
def full_stack(servers: Settings) -> Settings:
    """The shared stack with both query nodes and Airflow, and so the stream driver, up."""
    start(servers, only=("query_nodes", "airflow"))
    return servers
