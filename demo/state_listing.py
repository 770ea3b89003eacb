"""Reads all states of a read model from a query node."""

from http import HTTPStatus
from typing import Any

import httpx

from include.nodes.local_nodes import NodeAddress

TIMEOUT_S = 10.0
PAGE = 1_000


def list_states(node: NodeAddress, read_model: str, page: int = PAGE) -> dict[str, dict[str, Any]] | None:
    """Return the state of each key, from all nodes, as one node answers it; None if it cannot answer now.

    page: keys per request, 1 to 1,000.
    """
    found: dict[str, dict[str, Any]] = {}
    parameters: dict[str, str | int] = {"limit": page}
    with node.client(TIMEOUT_S) as client:
        while True:
            try:
                answer = client.get(f"/api/read-models/{read_model}/records", params=parameters)
            except httpx.HTTPError:
                return None
            if answer.status_code != HTTPStatus.OK:
                return None
            body = answer.json()
            found |= {record["key"]: record["state"] for record in body["records"]}
            if body["next"] is None:
                return found
            parameters["cursor"] = body["next"]
