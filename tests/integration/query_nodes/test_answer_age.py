"""Every answer says how old it can be; folds that stand still make the nodes degraded and their answers old."""

import time
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Producer, murmur2

from include.nodes.peers import LAG_HEADER
from include.stream.folded_offsets import STANDSTILL_S
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

CUSTOMER = "customer 7/é"
RECORD = f"/api/read-models/balance/records/{quote(CUSTOMER, safe='')}"
METRIC = 'foldlake_folds_standing_still_seconds{read_model="balance",version="1"}'


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/api/customers.getBalance?customerId={quote(CUSTOMER, safe='')}", 200),
        (f"/api/customers.getBalance?customerId={quote(CUSTOMER, safe='')}&minOffset=1000000", 503),
        ("/api/customers.getBalance?customerId=nobody", 404),
        (RECORD, 200),
        ("/api/read-models/balance/records?partition=0", 200),
    ],
)
def test_every_answer_says_how_old_it_can_be(folding: NodeStack, path: str, status: int) -> None:
    for port in folding.ports:
        asked_at = time.time()
        answer = folding.get(port, path)

        lag_s = int(answer.headers[LAG_HEADER]) / 1000
        as_of = datetime.fromisoformat(answer.headers["Foldlake-As-Of"]).timestamp()
        assert answer.status_code == status
        assert asked_at - lag_s - 0.01 <= as_of <= time.time() - lag_s + 0.01
        assert lag_s < folding.settings.node.session_timeout_s


def partitions(nodes: NodeStack) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = nodes.get(nodes.ports[0], "/api/partitions").json()
    return [report for report in reports if report["stage"] == "live"]


def fold_everything(nodes: NodeStack) -> None:
    """Write state records as if all events on the source had been folded."""
    for report in partitions(nodes):
        key = next(k for k in map(str, range(1000)) if murmur2(k.encode(), 4) == report["partition"])
        nodes.put(f"{key}", nodes.expected.get(key, next(iter(nodes.expected.values()))))
        nodes.writer.write(key, nodes.expected[key], nodes._event_counts[key], report["sourceEnd"] - 1)
    nodes.writer.flush()
    wait_until(lambda: all(r["eventsBehind"] == 0 for r in partitions(nodes)), "all events are folded")


def readiness(nodes: NodeStack, port: int) -> str:
    return str(nodes.get(port, "/readyz").json()["status"])


def standstill_s(nodes: NodeStack, port: int) -> float:
    lines = nodes.get(port, "/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(METRIC)).rpartition(" ")[2])


@pytest.fixture
def folding(nodes: NodeStack) -> NodeStack:
    """The nodes, after all events that other tests have produced appear to be folded."""
    fold_everything(nodes)
    wait_until(lambda: {readiness(nodes, port) for port in nodes.ports} == {"ready"}, "both nodes are ready")
    return nodes


def test_folds_that_stand_still_make_the_nodes_degraded_and_their_answers_old(folding: NodeStack) -> None:
    assert [standstill_s(folding, port) for port in folding.ports] == [0.0, 0.0]
    (folded,) = (r["folded"].get("0", 0) for r in partitions(folding) if r["partition"] == 0)
    producer = Producer(folding.settings.kafka_connection.client_settings)
    for _ in range(folded + 2):
        producer.produce("balance", b"the nodes do not decode events", b"key", partition=0)
    assert producer.flush(30) == 0
    produced_at = time.time()

    wait_until(
        lambda: {readiness(folding, port) for port in folding.ports} == {"degraded"},
        "nodes are degraded",
        180,
    )

    for port in folding.ports:
        degraded = folding.get(port, "/readyz")
        assert degraded.status_code == 200, "no other node has newer answers"
        assert "events that are not folded" in " ".join(degraded.json()["reasons"])
        answer = folding.balance(port, CUSTOMER)
        as_of = datetime.fromisoformat(answer.headers["Foldlake-As-Of"]).timestamp()
        assert answer.status_code == 200
        assert int(answer.headers[LAG_HEADER]) > STANDSTILL_S * 1000
        assert as_of < produced_at + 2.0
        assert standstill_s(folding, port) > STANDSTILL_S

    fold_everything(folding)
    wait_until(
        lambda: {readiness(folding, port) for port in folding.ports} == {"ready"},
        "nodes are ready again",
        180,
    )
    assert [standstill_s(folding, port) for port in folding.ports] == [0.0, 0.0]
