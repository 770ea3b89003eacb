"""Two nodes with in-memory stores: they give the same answers, and read the whole changelog again at each start."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal

import httpx
import pytest

from include.nodes.peers import HOP_ANY, HOP_HEADER
from include.settings import Settings
from query_api.store.memory.server import SOCKET_FILE
from tests.support.http.local_http import HTTP
from tests.support.node_stack import NodeStack, node_stack
from tests.support.repetition import repeated
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def running(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[NodeStack]:
    """Two nodes with the balances of some customers in memory."""
    with node_stack(servers, keep_home, customers=100, node_store="memory") as nodes:
        yield nodes


@pytest.fixture
def nodes(running: NodeStack) -> NodeStack:
    """The same nodes, once both are ready and own partitions."""
    return running.settled()


@contextmanager
def readiness(port: int) -> Iterator[list[bool]]:
    """Query a node continuously whether its own partitions are ready; yields the answers."""
    answers: list[bool] = []

    def query() -> None:
        with suppress(httpx.HTTPError):
            # With this header, the node omits the reports of other nodes.
            response = HTTP.get(f"http://127.0.0.1:{port}/api/partitions", headers={HOP_HEADER: HOP_ANY})
            answers.extend(report["is_ready"] for report in response.json())

    with repeated(query, pause_s=0.02):
        yield answers


def unknown(failures: list[str]) -> list[str]:
    """Return the lookups that were answered with 404."""
    return [failure for failure in failures if ": 404 " in failure]


def test_records_are_looked_up_and_listed_and_none_is_on_disk(nodes: NodeStack) -> None:
    nodes.wait_until_exact()
    listed: set[str] = set()
    for partition in range(nodes.settings.topics.partitions):
        after = ""
        while after is not None:
            path = f"/api/read-models/balance/records?partition={partition}&limit=7&after={after}"
            page = nodes.get(nodes.ports[0], path).json()
            listed |= {record["key"] for record in page["records"]}
            after = page["next"]
    assert listed == set(nodes.expected)
    assert {path.name for path in nodes.store("node-1").iterdir()} <= {SOCKET_FILE, "incarnation"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_restarted_materializer_reads_the_changelog_again_and_is_not_ready_meanwhile(
    nodes: NodeStack, number: signal.Signals
) -> None:
    pid = nodes.pid("node-1-materializer")
    with nodes.continuous_lookups() as failures, readiness(nodes.ports[0]) as answers:
        os.kill(pid, number)
        nodes.put("customer 3/é", nodes.expected["customer 3/é"] + Decimal("1.00"))
        nodes.writer.flush()
        wait_until(lambda: False in answers, "the node is not ready")
        not_ready_at = len(answers)
        wait_until(lambda: all(answers[-4:]) and len(answers) > not_ready_at, "the node is ready again")

    nodes.wait_until_exact()
    assert unknown(failures) == []
    assert nodes.pid("node-1-materializer") != pid


def test_both_killed_at_once_lose_nothing(nodes: NodeStack) -> None:
    with nodes.continuous_lookups() as failures:
        nodes.kill("node-1-materializer", "node-2-materializer")
        nodes.settled()

    nodes.wait_until_exact()
    assert unknown(failures) == [], "a node without records reports that it is not ready"


def test_store_deleted_under_a_running_node_is_rebuilt(nodes: NodeStack) -> None:
    socket = nodes.store("node-2") / SOCKET_FILE
    created_at = socket.stat().st_mtime_ns
    with nodes.continuous_lookups() as failures:
        shutil.rmtree(nodes.store("node-2"))
        wait_until(
            lambda: socket.exists() and socket.stat().st_mtime_ns != created_at, "the store was created again"
        )

    nodes.wait_until_exact()
    assert unknown(failures) == []
