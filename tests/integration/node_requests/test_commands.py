"""A command is either written and acknowledged, or refused with a reason and not written."""

from decimal import Decimal

import httpx
import pytest
from confluent_kafka import TopicPartition, murmur2

from include.kafka.log_reading import log_consumer
from tests.support.commands import (
    ADD,
    WITHDRAW,
    event_fields,
    post,
    slug,
    written,
    written_ids,
)
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until


def record_at(nodes: NodeStack, position: dict[str, int]) -> tuple[str, dict[str, object]]:
    consumer = log_consumer(nodes.settings.kafka_connection)
    consumer.assign([TopicPartition("balance", position["partition"], position["offset"])])
    try:
        message = consumer.poll(10)
        assert message is not None
        return (message.key() or b"").decode(), event_fields(message)
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
    ("body", "status", "problem"),
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
def test_refused_command_writes_nothing(nodes: NodeStack, body: bytes, status: int, problem: str) -> None:
    before = written(nodes)

    answer = post(nodes, ADD, body)

    assert (answer.status_code, slug(answer)) == (status, problem)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert written(nodes) == before


def test_killed_broker_comes_back_and_nothing_is_lost(nodes: NodeStack) -> None:
    assert post(nodes, ADD, {"customerId": "1", "amount": "1.00"}).status_code == 202
    refused: list[httpx.Response] = []

    def is_accepted() -> bool:
        answer = post(nodes, ADD, {"customerId": "1", "amount": "1.00"})
        if answer.status_code == 503:
            refused.append(answer)
        return answer.status_code == 202

    nodes.kill("kafka")
    wait_until(is_accepted, "the broker is back")

    assert {slug(answer) for answer in refused} <= {"log-unavailable"}
    assert {answer.json()["id"] for answer in refused} & written_ids(nodes) == set()
    nodes.put("customer 1/é", Decimal("123.45"))
    nodes.writer.flush()
    nodes.wait_until_exact()
