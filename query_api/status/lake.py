"""The section `lake`: the tables for analysts, and how old they are."""

from dataclasses import dataclass, replace

from include.lake.tables import table_path
from include.position import Offsets
from query_api.cluster.node_state import NodeState
from query_api.status.node_view import NodeView


@dataclass(frozen=True)
class TableEntry:
    """A table of a read model, or an event table. What is not known, or does not apply, is None.

    exists: it is there, and the other values are those of its newest commit. events_behind: of a read model's table.
    """

    table: str
    is_event_table: bool
    path: str
    exists: bool = False
    version: int | None = None
    rows: int | None = None
    bytes: int | None = None
    delta_version: int | None = None
    age_s: float | None = None
    events_behind: int | None = None


def read_lake(view: NodeView) -> list[TableEntry]:
    """Return each table of a read model and each event table, also one that does not exist yet."""
    state = view.state()
    names = [*view.catalog.models, *view.catalog.event_tables]
    return [_entry(view, name, state) for name in names]


def _entry(view: NodeView, name: str, state: NodeState | None) -> TableEntry:
    # The library takes 20 MB, which a worker needs only once somebody looks.
    from include.lake.status import table_summary  # noqa: PLC0415

    root = view.settings.lake_root
    summary = table_summary(root, name)
    entry = TableEntry(name, name in view.catalog.event_tables, table_path(root, name))
    if summary is None:
        return entry
    return replace(
        entry,
        exists=True,
        version=summary.version,
        rows=summary.rows,
        bytes=summary.bytes,
        delta_version=summary.delta_version,
        age_s=summary.newest_age_s,
        events_behind=_events_behind(state, name, summary.version, summary.complete_up_to),
    )


def _events_behind(state: NodeState | None, name: str, version: int | None, done: Offsets) -> int | None:
    model = None if state is None else state.models.get(name)
    stored = None if model is None or version is None else model.versions.get(version)
    if stored is None or not stored.source_ends:
        return None
    return done.merge(Offsets(stored.source_starts)).events_until(stored.source_ends)
