"""Reads all pages of a read model from a node."""

from decimal import Decimal
from typing import Any
from urllib.parse import quote

from tests.support.node_stack import NodeStack

PATH = "/api/read-models/balance/records"


def list_all(nodes: NodeStack, ports: tuple[int, ...], limit: int = 7) -> list[dict[str, Any]]:
    """Return every record of `balance`, page by page, each page from the next of these nodes; fails if one refuses."""
    found: list[dict[str, Any]] = []
    cursor, number = "", 0
    while True:
        port = ports[number % len(ports)]
        answer = nodes.get(port, f"{PATH}?limit={limit}{f'&cursor={quote(cursor)}' if cursor else ''}")
        assert answer.status_code == 200, answer.text
        page = answer.json(parse_float=Decimal)
        assert (page["readModel"], page["version"]) == ("balance", 1)
        assert int(answer.headers["Foldlake-Lag-Ms"]) >= 0
        assert len(page["records"]) == limit or page["next"] is None
        found += page["records"]
        if page["next"] is None:
            return found
        cursor, number = page["next"], number + 1
