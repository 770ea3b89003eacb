"""Commands sent to query nodes, and what is on the log afterwards."""

import io
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import fastavro
import httpx
from confluent_kafka import Message

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.log_reading import end_offsets, log_consumer, read_tail
from include.kafka.wire_format import split
from tests.support.http.local_http import HTTP
from tests.support.node_stack import NodeStack

ADD = "/api/balance.addFunds"
WITHDRAW = "/api/balance.withdrawFunds"
JSON = {"Content-Type": "application/json"}


def post(
    nodes: NodeStack,
    path: str,
    body: bytes | dict[str, object],
    port_index: int = 0,
    headers: Mapping[str, str] = JSON,
) -> httpx.Response:
    """Send a command to a node."""
    url = f"http://127.0.0.1:{nodes.ports[port_index]}{path}"
    if isinstance(body, bytes):
        return HTTP.post(url, content=body, headers=headers)
    return HTTP.post(url, json=body)


def post_together(nodes: NodeStack, ids: list[str]) -> dict[str, httpx.Response]:
    """Send a command with each of these ids to the first node, all at the same time; return the answers by id."""

    def add(number_and_id: tuple[int, str]) -> httpx.Response:
        number, event_id = number_and_id
        return post(nodes, ADD, {"customerId": f"customer {number}", "amount": "1.00", "id": event_id})

    with ThreadPoolExecutor(len(ids)) as threads:
        return dict(zip(ids, threads.map(add, enumerate(ids)), strict=True))


def slug(answer: httpx.Response) -> str:
    """Return the kind of problem that an answer reports."""
    return str(answer.json()["type"]).removeprefix("urn:foldlake:problem:")


def written(nodes: NodeStack) -> int:
    """Return the number of events on the log."""
    consumer = log_consumer(nodes.settings.kafka_connection)
    try:
        return sum(end_offsets(consumer, "balance", nodes.settings.topics.partitions))
    finally:
        consumer.close()


def written_ids(nodes: NodeStack) -> set[str]:
    """Return the ids of all events on the log; other tests may have left records that are none."""
    consumer = log_consumer(nodes.settings.kafka_connection)
    try:
        return {
            str(event_fields(message)["id"])
            for partition in range(nodes.settings.topics.partitions)
            for message in read_tail(consumer, "balance", partition)
            if (message.value() or b"").startswith(b"\0")
        }
    finally:
        consumer.close()


def event_fields(message: Message) -> dict[str, object]:
    """Decode an event; both types of event have the same fields."""
    _, payload = split(message.value() or b"")
    event = fastavro.schemaless_reader(io.BytesIO(payload), event_schema("FundsAdded").parsed(), None)
    assert isinstance(event, dict)
    return event
