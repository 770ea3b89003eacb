"""One stack for all tests of the query nodes: Kafka, the registry and two nodes, without Airflow and Spark."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.support.changelog_writer import ChangelogWriter
from tests.support.node_stack import NodeStack
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

CUSTOMERS = 200


@pytest.fixture(scope="package")
def running_nodes(request: pytest.FixtureRequest) -> Iterator[NodeStack]:
    """Two nodes that hold the balances of some customers; started before there is anything to consume."""
    session = request.session
    components = ("kafka", "registry", "query_nodes")
    with temporary_stack(components, keep_home=lambda: session.testsfailed > 0) as settings:
        stack = NodeStack(settings, ChangelogWriter(settings))
        stack.writer.make_topics()
        stack.writer.register_live()
        for number in range(CUSTOMERS):
            stack.put(f"customer {number}/é", Decimal(number) / 100 + Decimal("5.00"))
        stack.writer.flush()
        stack.wait_until_exact()
        yield stack


@pytest.fixture
def nodes(running_nodes: NodeStack) -> NodeStack:
    """The same nodes, both ready, each an owner of some partitions."""
    wait_until(running_nodes.is_settled, "both are ready and own partitions")
    return running_nodes
