"""Every key goes all the way: command, changelog, both nodes and the hop between them, listings, cursors, changes, and what checks read."""

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from http.client import HTTPConnection
from itertools import cycle
from time import monotonic
from urllib.parse import quote, urlencode

import pytest
from confluent_kafka import murmur2

from include.nodes.node_url import PeerRule
from include.nodes.record_client import NodeClient
from include.nodes.record_requests import record_target
from tests.integration.live_changes.event_stream import event_stream
from tests.support.commands import ADD, post
from tests.support.http.record_keys import HARD_KEYS, random_keys
from tests.support.listing.whole_listing import list_all
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

KEYS = tuple(dict.fromkeys((*HARD_KEYS, *random_keys(7, 60))))
MODEL = "/api/read-models/balance"


@pytest.fixture(scope="module")
def amounts(running_nodes: NodeStack) -> dict[str, Decimal]:
    """The balance of each key, on the changelog, and streamed by a node while it was written."""
    nodes = running_nodes.settled()
    found = {key: Decimal(number).scaleb(-2) for number, key in enumerate(KEYS, 1)}
    with event_stream(nodes.ports[0], f"{MODEL}/changes") as stream:
        stream.wait_until_live()
        for key, amount in found.items():
            nodes.put(key, amount)
        nodes.writer.flush()
        stream.wait_for(
            lambda sent: {event.key for event in sent.named("changed")} >= set(KEYS), "all keys are streamed"
        )
    return found


@pytest.fixture
def connections(nodes: NodeStack) -> Iterator[dict[int, HTTPConnection]]:
    """A connection to each node, whose client sends a target as it is."""
    opened = {port: HTTPConnection("127.0.0.1", port, timeout=30) for port in nodes.ports}
    yield opened
    for one in opened.values():
        one.close()


def get(connection: HTTPConnection, target: str) -> tuple[int, str]:
    connection.request("GET", target)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_command_accepts_every_key(nodes: NodeStack) -> None:
    for key, port_index in zip(KEYS, cycle((0, 1)), strict=False):
        answer = post(nodes, ADD, {"customerId": key, "amount": "1.00"}, port_index)

        assert answer.status_code == 202, (key, answer.text)
        assert answer.json()["position"]["partition"] == murmur2(key.encode(), 4)


def test_every_key_is_found_on_both_nodes(
    amounts: dict[str, Decimal], connections: dict[int, HTTPConnection]
) -> None:
    for key, amount in amounts.items():
        encoded = quote(key, safe="")
        for connection in connections.values():
            for target in (
                f"{MODEL}/records/{encoded}",
                f"{MODEL}/records?key={encoded}",
                record_target("balance", key, {"version": 1}),
            ):
                wait_until(partial(is_record, connection, target, key, amount), f"{key!r} at {target}")
            status, text = get(connection, f"/api/customers.getBalance?customerId={encoded}")
            assert (status, text) == (200, f'{{"amount":{amount}}}')


def is_record(connection: HTTPConnection, target: str, key: str, amount: Decimal) -> bool:
    status, text = get(connection, target)
    if status == 503:  # both nodes are busy
        return False
    record = json.loads(text, parse_float=Decimal)
    assert (status, record["key"], record["state"]["amount"]) == (200, key, amount)
    return True


def test_every_key_is_listed_once(nodes: NodeStack, amounts: dict[str, Decimal]) -> None:
    listed = [record["key"] for record in list_all(nodes, nodes.ports)]

    assert sorted(set(KEYS) & set(listed)) == sorted(key for key in listed if key in amounts)


def test_a_check_reads_the_record_of_every_key(nodes: NodeStack, amounts: dict[str, Decimal]) -> None:
    client = NodeClient(nodes.settings.kafka_connection, PeerRule(), "balance", 1, "balance")
    try:
        replicas = client.replicas(60).ready
        assert len(replicas) == 8
        for key, amount in amounts.items():
            for replica in (one for one in replicas if one.partition == murmur2(key.encode(), 4)):
                text = client.record(replica, key, monotonic() + 30)
                assert text is not None, (key, replica)
                record = json.loads(text, parse_float=Decimal)
                assert (record["key"], record["state"]["amount"]) == (key, amount)
    finally:
        client.close()


@pytest.mark.usefixtures("amounts")
@pytest.mark.parametrize("key", ["/x", "..", "a\nb", "\x00", "-", "%"])
def test_a_stream_of_one_key_begins_with_its_record_only(nodes: NodeStack, key: str) -> None:
    query = urlencode({"key": key, "snapshot": "true"})
    for port in nodes.ports:
        with event_stream(port, f"{MODEL}/changes?{query}") as stream:
            stream.wait_until_live()

            assert [event.key for event in stream.named("present")] == [key]
