"""Two query nodes for all tests of this folder, without Airflow or Spark."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from stack.lifecycle import start
from tests.support.node_stack import NodeStack, with_balances
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

CUSTOMERS = 200


@pytest.fixture(scope="package")
def running_nodes(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[NodeStack]:
    """Two nodes with the balances of some customers; they start before there is anything to consume."""
    with sharing_servers(servers, keep_home) as home:
        start(home, ("query_nodes",))
        yield with_balances(home, servers, CUSTOMERS)


@pytest.fixture
def nodes(running_nodes: NodeStack) -> NodeStack:
    """The same nodes, once both are ready and own partitions."""
    wait_until(running_nodes.is_settled, "both are ready and own partitions")
    return running_nodes
