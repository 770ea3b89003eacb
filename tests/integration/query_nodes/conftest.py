"""Two query nodes for all tests of this folder, without Airflow or Spark."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from tests.support.node_stack import NodeStack, node_stack


@pytest.fixture(scope="package")
def running_nodes(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[NodeStack]:
    """Two nodes with the balances of some customers."""
    with node_stack(servers, keep_home, customers=200, node_access_log=True) as nodes:
        yield nodes


@pytest.fixture
def nodes(running_nodes: NodeStack) -> NodeStack:
    """The same nodes, once both are ready and own partitions."""
    return running_nodes.settled()
