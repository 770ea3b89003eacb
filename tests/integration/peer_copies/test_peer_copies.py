"""A node that has lost its store copies the other node's records, and has every record also if that one fails; real nodes, Kafka and registry."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal

import psutil
import pytest

from include.nodes.peers import HOP_ANY, HOP_HEADER
from include.observability.request_context import REQUEST_ID_HEADER
from include.position import Position
from include.settings import Settings
from query_api.materializer.peer_copy import MIN_RECORDS
from tests.support.http.local_http import http_client
from tests.support.node_stack import NodeStack, node_stack
from tests.support.waiting import wait_until

BULK = MIN_RECORDS + 1_000
# Enough that some are in each partition, and in different batches.
COMPARED = range(0, BULK, BULK // 200)
AMOUNT = Decimal("3.00")
# A store without the bulk is smaller, and one with the first batch of it greater.
STARTED_BYTES = 500_000
Numbers = dict[str, float]


@pytest.fixture(scope="module")
def nodes(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[NodeStack]:
    """Two nodes that have enough records to be copied."""
    with node_stack(servers, keep_home, customers=20) as running:
        for number in range(BULK):
            running.writer.write(f"bulk {number}", AMOUNT)
        running.writer.flush()
        wait_until(lambda: all(has_everything(running, port) for port in running.ports), "all is read")
        yield running.settled()


def metrics(nodes: NodeStack, port: int) -> Numbers:
    """Return the sum of each metric of a node over its labels."""
    found: Numbers = {}
    for line in nodes.get(port, "/metrics").text.splitlines():
        if not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name = series.partition("{")[0]
            found[name] = found.get(name, 0.0) + float(value)
    return found


def has_everything(nodes: NodeStack, port: int) -> bool:
    """Whether a node is ready, and has read the changelog to its end."""
    return nodes.is_ready(port) and metrics(nodes, port).get("foldlake_changelog_lag_records") == 0


def own_answers(nodes: NodeStack, port: int) -> list[str]:
    """Return a node's own answers for some keys; another node is not asked."""
    keys = [*(f"bulk {number}" for number in COMPARED), *nodes.expected]
    with http_client(keep_alive=True) as client:
        url = f"http://127.0.0.1:{port}/api/customers.getBalance"
        # Problems contain the request's id.
        headers = {HOP_HEADER: HOP_ANY, REQUEST_ID_HEADER: "compared"}
        answers = [(key, client.get(url, params={"customerId": key}, headers=headers)) for key in keys]
    return [f"{key}: {answer.status_code} {answer.text}" for key, answer in answers]


def change_and_remove(nodes: NodeStack, number: int) -> None:
    """Append newer balances of all customers, and the removal of one of the compared keys."""
    for customer in nodes.expected:
        nodes.put(customer, nodes.expected[customer] + Decimal("0.01"))
    nodes.writer.remove(f"bulk {COMPARED[number]}", Position(0, 0, 1))
    nodes.writer.flush()


@contextmanager
def paused(nodes: NodeStack, process: str) -> Iterator[None]:
    """Stop a supervised process and its children in the block."""
    server = psutil.Process(nodes.pid(process))
    stopped = [server, *server.children(recursive=True)]
    for one in stopped:
        one.suspend()
    try:
        yield
    finally:
        for one in stopped:
            one.resume()


def lose_store(nodes: NodeStack) -> None:
    """Kill the first node's writer, and remove its store."""
    os.kill(nodes.pid("node-1-materializer"), signal.SIGKILL)
    shutil.rmtree(nodes.store("node-1"))
    wait_until(lambda: not nodes.is_ready(nodes.ports[0]), "the node has noticed")


def check_same(nodes: NodeStack, removed: int) -> None:
    """Wait until the first node is ready; its answers are those of the second one, and the written ones."""
    wait_until(lambda: all(has_everything(nodes, port) for port in nodes.ports), "both have read everything")
    nodes.settled()
    nodes.wait_until_exact()
    answers, expected = (own_answers(nodes, port) for port in nodes.ports)
    assert answers == expected
    assert [": 404 " in answer for answer in answers[: len(COMPARED)]] == [
        number < removed for number in range(len(COMPARED))
    ]


def test_node_without_its_store_copies_its_peer_and_has_what_changed_meanwhile(nodes: NodeStack) -> None:
    lose_store(nodes)
    change_and_remove(nodes, 0)
    wait_until(lambda: metrics(nodes, nodes.ports[0]).get("foldlake_copied_records", 0) > 0, "it has copied")
    change_and_remove(nodes, 1)

    check_same(nodes, removed=2)

    assert metrics(nodes, nodes.ports[0])["foldlake_copied_records"] == pytest.approx(BULK, abs=100)


def test_node_reads_the_changelog_while_its_peer_does_not_respond(nodes: NodeStack) -> None:
    with paused(nodes, "node-2-http"):
        lose_store(nodes)
        change_and_remove(nodes, 2)
        wait_until(lambda: has_everything(nodes, nodes.ports[0]), "the node is ready without its peer")

    check_same(nodes, removed=3)
    assert metrics(nodes, nodes.ports[0])["foldlake_copied_records"] == 0


def test_node_has_everything_after_its_peer_is_killed_during_the_copy(nodes: NodeStack) -> None:
    peer = [nodes.pid(process) for process in ("node-2-http", "node-2-materializer")]
    lose_store(nodes)
    path = nodes.store("node-1") / "data.mdb"
    wait_until(lambda: path.exists() and path.stat().st_size > STARTED_BYTES, "it copies", poll_s=0.005)

    for pid in peer:
        os.kill(pid, signal.SIGKILL)

    check_same(nodes, removed=3)
