"""The shared stack with all components up. These tests run last: what they start stays up until the end of the run."""

import pytest

from include.settings import Settings
from stack.lifecycle import start


@pytest.fixture(scope="session")
def full_stack(servers: Settings) -> Settings:
    """The shared stack with both query nodes and Airflow up, and therefore the stream driver."""
    start(servers, only=("query_nodes", "airflow"))
    return servers
