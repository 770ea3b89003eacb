"""Transactions on the source do not make the nodes degraded: markers and aborted records need no fold, nor does what waits behind them."""

import time
from typing import Any

from confluent_kafka import murmur2

from include.nodes.peers import LAG_HEADER
from include.stream.folded_offsets import STANDSTILL_S
from query_api.materializer.fold_watch import CHECK_INTERVAL_S
from tests.support.faults.transactions import TransactionalWriter
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

EVENT = [(b"key", b"the nodes do not decode events")]
QUIET = [*EVENT] * 3
PARTITIONS = 4
# The node reports stalled folds within this time.
NOTICED_S = STANDSTILL_S + CHECK_INTERVAL_S + 2.0


def partitions(nodes: NodeStack) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = nodes.get(nodes.ports[0], "/api/partitions").json()
    return [report for report in reports if report["stage"] == "live"]


def fold_everything(nodes: NodeStack) -> None:
    """Write state records as if all events on the source had been folded."""
    for report in partitions(nodes):
        key = next(k for k in map(str, range(1000)) if murmur2(k.encode(), PARTITIONS) == report["partition"])
        nodes.put(key, nodes.expected.get(key, next(iter(nodes.expected.values()))))
        nodes.writer.write(key, nodes.expected[key], nodes.event_count(key), report["sourceEnd"] - 1)
    nodes.writer.flush()
    wait_until(lambda: all(r["eventsBehind"] == 0 for r in partitions(nodes)), "all events are folded")


def are_ready(nodes: NodeStack) -> bool:
    return {nodes.get(port, "/readyz").json()["status"] for port in nodes.ports} == {"ready"}


def test_markers_aborted_records_and_open_transactions_are_no_standstill(nodes: NodeStack) -> None:
    """Partition 0 gets aborted transactions all the time, partition 1 stays quiet after one, and one stays open on partition 2."""
    settings = nodes.settings
    writers = [TransactionalWriter(settings, "balance") for _ in range(3)]
    for partition, writer in enumerate(writers):
        writer.commit(EVENT, partition)
    wait_until(
        lambda: sum(r["sourceEnd"] for r in partitions(nodes)) >= len(writers), "the nodes see the events"
    )
    time.sleep(2.5)
    fold_everything(nodes)
    wait_until(lambda: are_ready(nodes), "both nodes are ready")
    writers[1].abort(QUIET, partition=1)
    writers[2].leave_open(QUIET, partition=2)

    end_s = time.monotonic() + NOTICED_S
    while time.monotonic() < end_s:
        writers[0].abort(EVENT, partition=0)
        assert are_ready(nodes), nodes.get(nodes.ports[0], "/readyz").text
        time.sleep(0.5)

    answer = nodes.balance(nodes.ports[0], next(iter(nodes.expected)))
    assert int(answer.headers[LAG_HEADER]) < 1000 * settings.node.session_timeout_s
    wait_until(lambda: [r["eventsBehind"] for r in partitions(nodes)] == [0] * PARTITIONS, "none is behind")
    writers[2].abort_open()
    wait_until(lambda: [r["eventsBehind"] for r in partitions(nodes)] == [0] * PARTITIONS, "none is behind")
    assert are_ready(nodes)
    writers[1].commit(EVENT, partition=1)
    wait_until(lambda: not are_ready(nodes), "an event behind markers waits for its fold", 30)
    fold_everything(nodes)
    wait_until(lambda: are_ready(nodes), "both nodes are ready again", 30)
