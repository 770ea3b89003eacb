"""The sections `nodes` and `partitions`.

Every node, whether it should get requests, and what is wrong with its answers; the owner, the standbys and the lag of every partition.
"""

import json
from dataclasses import dataclass
from http import HTTPStatus

from include.nodes.peers import HOP_ANY, PeerDownError, Peers
from include.settings import Placement, Settings
from query_api.cluster.node_state import NodeState
from query_api.listener import served_certificates
from query_api.lookup.partition_status import local_reports, merged, peer_reports
from query_api.status.node_view import NodeView, readiness

READY, DEGRADED, NOT_READY, SILENT = "ready", "degraded", "not ready", "no answer"


@dataclass(frozen=True)
class NodeEntry:
    """A query node.

    page_url: of its status page; empty if only nodes and jobs can reach its `url`. state: ready, degraded, not ready or no answer.
    owned_partitions: number of live partitions that it owns.
    """

    node: str
    url: str
    page_url: str
    is_self: bool
    state: str
    reasons: list[str]
    owned_partitions: int = 0


def read_nodes(view: NodeView) -> list[NodeEntry]:
    """Return each node."""
    state = view.state()
    if state is None:
        reasons = ["The materializer has not started yet."]
        return [NodeEntry(view.settings.node.name, "", "", is_self=True, state=NOT_READY, reasons=reasons)]
    nodes = []
    for url, name in sorted({**state.nodes, state.url: state.node}.items(), key=lambda item: item[::-1]):
        condition, reasons = _own(view, state) if url == state.url else _peer(view.lookups.peers, url)
        owned = sum(owner == url for model in state.models.values() for owner in model.owners.values())
        is_self = url == state.url
        page_url = _page_url(view.settings, url, is_self=is_self)
        nodes.append(NodeEntry(name, url, page_url, is_self, condition, reasons, owned))
    return nodes


def _page_url(settings: Settings, url: str, *, is_self: bool) -> str:
    if not settings.has_peer_listener:
        return url
    return settings.caller_url if is_self else ""


def _own(view: NodeView, state: NodeState) -> tuple[str, list[str]]:
    found = readiness(state, view.settings.node)
    warnings = [one.warning for one in served_certificates(view.settings) if one.warning]
    if found.not_ready:
        return NOT_READY, [*found.not_ready, *warnings]
    return (DEGRADED if found.degraded else READY), [*found.degraded, *warnings]


def _peer(peers: Peers, url: str) -> tuple[str, list[str]]:
    try:
        answer = peers.at(url).get("/readyz", HOP_ANY)
        fields = json.loads(answer.body)
        reasons = [str(reason) for reason in fields.get("reasons", ())]
    except PeerDownError as error:
        return SILENT, [f"{error}."]
    except (ValueError, AttributeError, TypeError):
        return SILENT, [f"{url} is not a query node."]
    if answer.status != HTTPStatus.OK:
        return NOT_READY, reasons
    return (DEGRADED, reasons) if reasons else (READY, [])


@dataclass(frozen=True)
class PartitionEntry:
    """A partition of a version, as in a PartitionReport; owner and standbys are names of nodes where these are known."""

    read_model: str
    version: int
    stage: str
    partition: int
    owner: str | None
    standbys: list[str]
    placement: Placement
    is_ready: bool
    lag_records: int | None
    events_behind: int | None


def read_partitions(view: NodeView) -> list[PartitionEntry]:
    """Return each partition, as `/api/partitions` does."""
    state = view.state()
    if state is None:
        return []
    names = {**state.nodes, state.url: state.node}
    reports = merged(local_reports(view.lookups.local), peer_reports(view.lookups.peers, state))
    return [
        PartitionEntry(
            report.read_model,
            report.version,
            report.stage,
            report.partition,
            None if report.owner is None else names.get(report.owner, report.owner),
            [names.get(url, url) for url in report.standbys],
            report.placement,
            report.is_ready,
            report.lag_records,
            report.events_behind,
        )
        for report in reports
    ]
