"""The section `history`: what this node has measured of each live version in the last hour."""

from typing import Any

from query_api.history import history_file
from query_api.history.samples import INTERVAL_S
from query_api.status.node_view import NodeView


def read(view: NodeView) -> dict[str, Any]:
    """Return `interval_s`, and `models`: read model -> field of a sample -> its values, oldest first."""
    return {"interval_s": INTERVAL_S, "models": history_file.read_json(view.settings.store_dir)}
