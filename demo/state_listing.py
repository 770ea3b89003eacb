"""Reads all states of a read model from a query node."""

from http import HTTPStatus
from typing import Any

import httpx

TIMEOUT_S = 10.0
PAGE = 1_000


def list_states(node: str, read_model: str, page: int = PAGE) -> dict[str, dict[str, Any]] | None:
    """Return the state of each key, from all nodes, as one node answers it; None if it cannot answer now.

    node: base URL of a query node. page: keys per request, 1 to 1,000.
    """
    found: dict[str, dict[str, Any]] = {}
    parameters: dict[str, str | int] = {"limit": page}
    with httpx.Client(base_url=node, timeout=TIMEOUT_S, trust_env=False) as client:
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
