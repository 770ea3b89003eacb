"""Lists the active orders on a query node."""

from datetime import datetime
from http import HTTPStatus

import httpx

from demo.orders.oracle import Location

TIMEOUT_S = 10.0
PAGE = 1_000


def list_active(node: str, page: int = PAGE) -> dict[str, Location] | None:
    """Return the location of each order of all nodes, as one node lists them; None if it refuses.

    Args:
        node: base URL of a query node.
        page: orders per request, 1 to 1,000.
    """
    found: dict[str, Location] = {}
    parameters: dict[str, str | int] = {"limit": page}
    with httpx.Client(base_url=node, timeout=TIMEOUT_S, trust_env=False) as client:
        while True:
            try:
                answer = client.get("/api/read-models/order-location/records", params=parameters)
            except httpx.HTTPError:
                return None
            if answer.status_code != HTTPStatus.OK:
                return None
            body = answer.json()
            found |= {record["key"]: _location(record["state"]) for record in body["records"]}
            if body["next"] is None:
                return found
            parameters["cursor"] = body["next"]


def _location(state: dict[str, str | float]) -> Location:
    return (
        str(state["courier"]),
        float(state["latitude"]),
        float(state["longitude"]),
        str(state["status"]),
        datetime.fromisoformat(str(state["placed_on"])),
        datetime.fromisoformat(str(state["located_on"])),
    )
