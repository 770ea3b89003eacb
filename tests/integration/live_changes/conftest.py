"""Two query nodes for all tests of this folder, with a read model whose items have a location."""

from collections.abc import Callable, Iterator

import pytest

from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import first_version
from stack.lifecycle import start
from tests.integration.live_changes.buoys import FOLDER, MODEL, Buoys
from tests.support.changelog_writer import ChangelogWriter
from tests.support.node_stack import NodeStack
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

WORKERS = 2
STREAMS = 16
# One address gets three quarters.
STREAMS_OF_CLIENT = 12


@pytest.fixture(scope="package")
def running(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[tuple[NodeStack, Buoys]]:
    """Two nodes, which serve the buoys, and a balance without records."""
    with sharing_servers(servers, keep_home, read_models_dir=FOLDER, node_http_streams=STREAMS) as home:
        nodes = NodeStack(home, ChangelogWriter(home), servers=servers)
        nodes.writer.make_topics()
        buoys = Buoys(home)
        registry = VersionRegistry(home.kafka_connection)
        registry.ensure_topic()
        registry.compare_and_set(first_version(MODEL, 1), 0)
        nodes.writer.register_live()
        start(home, ("query_nodes",))
        wait_until(
            lambda: all(
                nodes.get(port, f"/api/read-models/{MODEL}/records").is_success for port in nodes.ports
            ),
            "both nodes serve the read model",
        )
        yield nodes, buoys


@pytest.fixture
def nodes(running: tuple[NodeStack, Buoys]) -> NodeStack:
    """The nodes."""
    return running[0].settled()


@pytest.fixture
def buoys(running: tuple[NodeStack, Buoys]) -> Buoys:
    """The buoys of version 1."""
    return running[1]
