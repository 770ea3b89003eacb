"""The section `lake`: the tables for analysts, and how old they are."""

from typing import Any

from include.lake.tables import table_path
from include.position import Offsets
from query_api.cluster.node_state import NodeState
from query_api.status.node_view import NodeView


def read_lake(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each table of a read model and each event table, also for one that does not exist yet.

    events_behind: of a read model's table; None if this node does not know the end of the source.
    """
    state = view.state()
    names = [*view.catalog.models, *view.catalog.event_tables]
    return [_entry(view, name, state) for name in names]


def _entry(view: NodeView, name: str, state: NodeState | None) -> dict[str, Any]:
    # The library takes 20 MB, which a worker needs only once somebody looks.
    from include.lake.status import table_summary  # noqa: PLC0415

    root = view.settings.lake_root
    summary = table_summary(root, name)
    entry: dict[str, Any] = {
        "table": name,
        "is_event_table": name in view.catalog.event_tables,
        "path": table_path(root, name),
        "exists": summary is not None,
    }
    if summary is None:
        return entry
    return entry | {
        "version": summary.version,
        "rows": summary.rows,
        "bytes": summary.bytes,
        "delta_version": summary.delta_version,
        "age_s": summary.newest_age_s,
        "events_behind": _events_behind(state, name, summary.version, summary.complete_up_to),
    }


def _events_behind(state: NodeState | None, name: str, version: int | None, done: Offsets) -> int | None:
    model = None if state is None else state.models.get(name)
    stored = None if model is None or version is None else model.versions.get(version)
    if stored is None or not stored.source_ends:
        return None
    return done.merge(Offsets(stored.source_starts)).events_until(stored.source_ends)
