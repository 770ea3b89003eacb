"""A command is either written and acknowledged, or refused with a reason and not written."""

import io
import os
import signal
import time
from decimal import Decimal

import fastavro
import httpx
import pytest
from confluent_kafka import TopicPartition, murmur2

from include.declarations.event_schemas import event_schema
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.wire_format import split
from tests.support.local_http import HTTP
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

ADD = "/api/balance.addFunds"
WITHDRAW = "/api/balance.withdrawFunds"


def post(nodes: NodeStack, path: str, body: bytes | dict[str, object], port_index: int = 0) -> httpx.Response:
    url = f"http://127.0.0.1:{nodes.ports[port_index]}{path}"
    if isinstance(body, bytes):
        return HTTP.post(url, content=body)
    return HTTP.post(url, json=body)


def written(nodes: NodeStack) -> int:
    consumer = log_consumer(nodes.settings.kafka.bootstrap_servers)
    try:
        return sum(end_offsets(consumer, "balance", nodes.settings.topics.partitions))
    finally:
        consumer.close()


def record_at(nodes: NodeStack, position: dict[str, int]) -> tuple[str, dict[str, object]]:
    consumer = log_consumer(nodes.settings.kafka.bootstrap_servers)
    consumer.assign([TopicPartition("balance", position["partition"], position["offset"])])
    try:
        message = consumer.poll(10)
        assert message is not None
        _, payload = split(message.value() or b"")
        # Both types of event have the same fields.
        event = fastavro.schemaless_reader(io.BytesIO(payload), event_schema("FundsAdded").parsed(), None)
        assert isinstance(event, dict)
        return (message.key() or b"").decode(), event
    finally:
        consumer.close()


@pytest.mark.parametrize("path", [ADD, WITHDRAW])
@pytest.mark.parametrize("amount", ['"5.00"', "5.00", "5", '"5.0"', '"9999999999999999.99"', "0.01"])
def test_accepted_event_is_on_the_log_at_the_answered_position(
    nodes: NodeStack, path: str, amount: str
) -> None:
    answer = post(nodes, path, b'{"customerId": "new \xc3\xa9", "amount": %s}' % amount.encode())

    assert answer.status_code == 202
    position = answer.json()["position"]
    assert position["partition"] == murmur2("new é".encode(), 4)
    key, event = record_at(nodes, position)
    assert key == "new é" == event["customerId"]
    assert event["amount"] == Decimal(amount.strip('"'))
    assert event["id"] == answer.json()["id"]


def test_client_may_choose_the_id(nodes: NodeStack) -> None:
    answer = post(nodes, ADD, {"customerId": "1", "amount": "1.00", "id": "mine"}, port_index=1)

    assert (answer.status_code, answer.json()["id"]) == (202, "mine")


@pytest.mark.parametrize(
    ("body", "status", "slug"),
    [
        (b"", 400, "not-json"),
        (b"garbage", 400, "not-json"),
        (b"\xff", 400, "not-json"),
        (b"[]", 400, "not-json"),
        (b'{"customerId": "1"}', 400, "invalid-command"),
        (b'{"customerId": "1", "amount": "5.001"}', 400, "invalid-command"),
        (b'{"customerId": "1", "amount": 0}', 400, "invalid-command"),
        (b'{"customerId": "", "amount": "5.00"}', 400, "invalid-command"),
        (b'{"customerId": "1", "amount": "5.00", "more": 1}', 400, "invalid-command"),
        (b'{"customerId": "1", "amount": "' + b"1" * 20_000 + b'"}', 413, "body-too-large"),
    ],
)
def test_refused_command_writes_nothing(nodes: NodeStack, body: bytes, status: int, slug: str) -> None:
    before = written(nodes)

    answer = post(nodes, ADD, body)

    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:foldlake:problem:{slug}")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert written(nodes) == before


def test_without_a_broker_a_command_is_refused_in_time_and_lookups_succeed(nodes: NodeStack) -> None:
    assert post(nodes, ADD, {"customerId": "1", "amount": "1.00"}).status_code == 202
    broker = nodes.pid("kafka")
    os.kill(broker, signal.SIGSTOP)
    try:
        started = time.monotonic()
        answer = post(nodes, ADD, {"customerId": "1", "amount": "1.00"})
        duration_s = time.monotonic() - started
        assert nodes.balance(nodes.ports[0], "customer 1/é").status_code == 200
        assert nodes.balance(nodes.ports[1], "customer 1/é").status_code == 200
    finally:
        os.kill(broker, signal.SIGCONT)

    assert (answer.status_code, answer.json()["type"]) == (503, "urn:foldlake:problem:log-unavailable")
    assert duration_s < 10, "far less than the minutes that a producer would wait by default"
    assert "Retry-After" in answer.headers
    wait_until(
        lambda: post(nodes, ADD, {"customerId": "1", "amount": "1.00"}).status_code == 202,
        "the broker is back",
    )


def test_killed_broker_comes_back_and_nothing_is_lost(nodes: NodeStack) -> None:
    nodes.kill("kafka")

    wait_until(
        lambda: post(nodes, ADD, {"customerId": "1", "amount": "1.00"}).status_code == 202,
        "the broker is back",
    )
    nodes.put("customer 1/é", Decimal("123.45"))
    nodes.writer.flush()
    nodes.wait_until_exact()
