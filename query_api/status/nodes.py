"""The sections `nodes` and `partitions`.

Every node, whether it should get requests, and what is wrong with its answers; the owner, the standbys and the lag of every partition.
"""

import json
from http import HTTPStatus
from typing import Any

from include.nodes.peers import HOP_ANY, PeerDownError, Peers
from include.settings import Settings
from query_api.cluster.node_state import NodeState
from query_api.listener import served_certificates
from query_api.lookup.partition_status import local_reports, merged, peer_reports
from query_api.status.node_view import NodeView, readiness

READY, DEGRADED, NOT_READY, SILENT = "ready", "degraded", "not ready", "no answer"


def read_nodes(view: NodeView) -> list[dict[str, Any]]:
    """Return each node: `node`, `url`, `page_url`, `is_self`, `state`, `reasons`, and the number of live partitions that it owns.

    page_url: of its status page; empty if only nodes and jobs can reach its `url`.
    """
    state = view.state()
    if state is None:
        return [_node(view.settings.node.name, "", NOT_READY, ["The materializer has not started yet."])]
    nodes = []
    for url, name in sorted({**state.nodes, state.url: state.node}.items(), key=lambda item: item[::-1]):
        condition, reasons = _own(view, state) if url == state.url else _peer(view.lookups.peers, url)
        owned = sum(owner == url for model in state.models.values() for owner in model.owners.values())
        nodes.append(
            _node(name, url, condition, reasons)
            | {
                "page_url": _page_url(view.settings, url, is_self=url == state.url),
                "is_self": url == state.url,
                "owned_partitions": owned,
            }
        )
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


def _node(name: str, url: str, condition: str, reasons: list[str]) -> dict[str, Any]:
    return {
        "node": name,
        "url": url,
        "page_url": "",
        "is_self": True,
        "state": condition,
        "reasons": reasons,
        "owned_partitions": 0,
    }


def read_partitions(view: NodeView) -> list[dict[str, Any]]:
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
