"""Lists the active orders on a query node."""

from datetime import datetime

from demo.orders.oracle import Location
from demo.state_listing import PAGE, list_states
from include.nodes.local_nodes import NodeAddress


def list_active(node: NodeAddress, page: int = PAGE) -> dict[str, Location] | None:
    """Return the location of each order of all nodes, as one node lists them; None if it cannot answer now. Arguments as `list_states`."""
    states = list_states(node, "order-location", page)
    return None if states is None else {key: _location(state) for key, state in states.items()}


def _location(state: dict[str, str | float]) -> Location:
    return (
        str(state["courier"]),
        float(state["latitude"]),
        float(state["longitude"]),
        str(state["status"]),
        datetime.fromisoformat(str(state["placed_on"])),
        datetime.fromisoformat(str(state["located_on"])),
    )
