"""Reads all items of a read model from a node, page by page."""

import json
import re
import time
from collections.abc import Sequence
from decimal import Decimal
from http import HTTPStatus

from benchmarks.support.lookup_client import NodeConnection

PATH = "/api/read-models/balance/records?limit=1000"
# The cursor stands at the end of a page; parsing a whole page would take as long as reading it.
NEXT = re.compile(rb'"next":(?:"([^"]*)"|null)\}$')
KEY = re.compile(rb'\{"key":')


def list_whole(port: int) -> dict[str, str]:
    """Return key -> balance of all items, each of which is listed once."""
    found: dict[str, str] = {}
    for page in _pages(NodeConnection(port)):
        for record in json.loads(page, parse_float=Decimal)["records"]:
            assert record["key"] not in found, f"{record['key']} is listed twice"
            found[record["key"]] = str(record["state"]["amount"])
    return found


def number_of_items(port: int) -> int:
    """Return the number of items that a node can list now; 0 while it cannot."""
    connection = NodeConnection(port)
    try:
        return sum(len(KEY.findall(page)) for page in _pages(connection))
    except (OSError, ValueError):
        return 0
    finally:
        connection.close()


def listings_s(ports: Sequence[int], number: int, seconds: float) -> list[float]:
    """Read all items again and again, from each node in turn; return the time that each took, in ascending order."""
    took_s: list[float] = []
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(took_s) < len(ports) + 1:
        # Of its own: a node closes a connection on which nothing happens while the other node is read.
        connection = NodeConnection(ports[len(took_s) % len(ports)])
        began = time.perf_counter()
        pages = list(_pages(connection))
        took_s.append(time.perf_counter() - began)
        connection.close()
        assert sum(len(KEY.findall(page)) for page in pages) == number, "a listing was not complete"
    return sorted(took_s[1:])


def _pages(connection: NodeConnection) -> "list[bytes]":
    """Return all pages; raises ValueError when the node refuses one."""
    pages, cursor = [], ""
    while True:
        status, page = connection.get(PATH + (f"&cursor={cursor}" if cursor else ""))
        found = NEXT.search(page)
        if status != HTTPStatus.OK or found is None:
            raise ValueError(f"a page was refused: {status} {page[:200]!r}")
        pages.append(page)
        if found[1] is None:
            return pages
        cursor = found[1].decode()
