"""The section `partitions`: owner, standbys and lag of every partition of every active version."""

from typing import Any

from query_api.lookup.partition_status import local_reports, merged, peer_reports
from query_api.status.node_view import NodeView


def read(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each partition, as `/api/partitions` does; owner and standbys are names of nodes where these are known."""
    state = view.state()
    if state is None:
        return []
    names = {**state.nodes, state.url: state.node}
    reports = merged(local_reports(view.lookups.local), peer_reports(view.lookups.peers, state))
    return [
        {
            "read_model": report.read_model,
            "version": report.version,
            "stage": report.stage,
            "partition": report.partition,
            "owner": None if report.owner is None else names.get(report.owner, report.owner),
            "standbys": [names.get(url, url) for url in report.standbys],
            "placement": report.placement.value,
            "is_ready": report.is_ready,
            "lag_records": report.lag_records,
            "events_behind": report.events_behind,
        }
        for report in reports
    ]
