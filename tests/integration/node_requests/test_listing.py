"""A node lists the exact records of its own store page by page, as owner and as standby."""

from decimal import Decimal
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.listing.whole_listing import list_all
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

PATH = "/api/read-models/balance/records"


def listed(nodes: NodeStack, port: int, partition: int, parameters: str = "limit=7") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        answer = nodes.get(port, f"{PATH}?partition={partition}&{parameters}&after={quote(after, safe='')}")
        assert answer.status_code == 200, answer.text
        page = answer.json(parse_float=Decimal)
        assert (page["readModel"], page["version"], page["partition"]) == ("balance", 1, partition)
        assert page["role"] == answer.headers["Foldlake-Role"]
        found += page["records"]
        after = page["next"]
    return found


def test_every_node_lists_every_record_that_it_stores(nodes: NodeStack) -> None:
    expected = {key: str(amount) for key, amount in nodes.expected.items()}

    def is_exact(port: int) -> bool:
        records = [
            record for p in range(nodes.settings.topics.partitions) for record in listed(nodes, port, p)
        ]
        assert len(records) == len(expected)
        return {record["key"]: str(record["state"]["amount"]) for record in records} == expected

    for port in nodes.ports:
        # A standby may briefly lag the owner; other tests wait only for the owner.
        wait_until(partial(is_exact, port), f"{port} lists all written records", 60)


def test_pages_are_in_the_order_of_keys(nodes: NodeStack) -> None:
    keys = [record["key"].encode() for record in listed(nodes, nodes.ports[0], 0)]

    assert keys == sorted(keys)
    assert len(keys) > 7


def test_one_node_lists_as_owner_and_the_other_as_standby(nodes: NodeStack) -> None:
    def roles() -> list[str]:
        return sorted(nodes.get(port, f"{PATH}?partition=1").json()["role"] for port in nodes.ports)

    # Each node reports its own role, which the routing table may show slightly earlier or later.
    wait_until(lambda: roles() == ["owner", "standby"], "one is the owner", 60)


def test_the_whole_read_model_is_listed_from_all_nodes_on_any_node(nodes: NodeStack) -> None:
    expected = {key: str(amount) for key, amount in nodes.expected.items()}

    # Each page from another node: a cursor is valid on all of them.
    for ports in (nodes.ports[:1], nodes.ports[1:], nodes.ports):
        records = list_all(nodes, ports)
        assert len(records) == len(expected), "no key twice, none left out"
        assert {record["key"]: str(record["state"]["amount"]) for record in records} == expected


@pytest.mark.parametrize(
    ("query", "status", "slug"),
    [
        ("cursor=x", 400, "invalid-cursor"),
        ("cursor=1.0.%25", 400, "invalid-cursor"),
        ("cursor=99.0.", 404, "unknown-model"),
        ("cursor=1.0.&after=x", 400, "unknown-parameter"),
        ("limit=0", 400, "invalid-limit"),
        ("version=99", 404, "unknown-model"),
        ("partition=x", 400, "invalid-partition"),
        ("partition=0&limit=0", 400, "invalid-limit"),
        ("partition=0&limit=1001", 400, "invalid-limit"),
        ("partition=0&format=arrow&sample=3/3", 400, "invalid-sample"),
        ("partition=0&version=x", 400, "invalid-version"),
        ("partition=0&after=" + "x" * 512, 400, "invalid-after"),
        ("partition=0&key=1", 400, "unknown-parameter"),
        ("partition=0&version=99", 404, "unknown-model"),
        ("partition=99", 421, "not-owner"),
    ],
)
def test_a_refused_listing_gives_the_reason(nodes: NodeStack, query: str, status: int, slug: str) -> None:
    answer = nodes.get(nodes.ports[0], f"{PATH}?{query}")

    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:foldlake:problem:{slug}")
