"""Endpoints for operations: liveness, readiness, partition status and metrics."""

import json

from flask import Blueprint, Response, request

from include.errors import KafkaUnavailableError
from include.nodes.partition_report import PARTITIONS_PATH, PartitionReport
from include.nodes.peers import HOP_ANY, HOP_HEADER, PeerDownError
from include.settings import Settings
from include.stream.status import read_stream_status
from query_api.http.json_text import dumps
from query_api.http.problems import ProblemError
from query_api.lookup.lookups import Lookups
from query_api.lookup.partition_status import local_reports, merged
from query_api.metrics.node_metrics import exposition
from query_api.metrics.stream_metrics import stream_exposition

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def health_blueprint(settings: Settings, lookups: Lookups) -> Blueprint:
    """Return these endpoints as a Flask blueprint."""
    blueprint = Blueprint("operations", __name__)

    @blueprint.get("/healthz")
    def healthz() -> Response:
        return _json({"status": "alive", "node": settings.node.name})

    @blueprint.get("/readyz")
    def readyz() -> Response:
        reasons = not_ready_reasons(lookups, float(settings.node.session_timeout_s))
        if reasons:
            raise ProblemError(503, "not-ready", " ".join(reasons), retry_after_s=1, reasons=reasons)
        return _json({"status": "ready", "node": settings.node.name})

    @blueprint.get(PARTITIONS_PATH)
    def partitions() -> Response:
        reports = local_reports(lookups.local)
        if HOP_HEADER not in request.headers:
            reports = merged(reports, _peer_reports(lookups))
        return _json([report.as_json() for report in reports])

    @blueprint.get("/metrics")
    def metrics() -> Response:
        text = exposition(lookups.local.state(), local_reports(lookups.local))
        return Response(text, content_type=PROMETHEUS_TYPE)

    @blueprint.get("/metrics/stream")
    def stream_metrics() -> Response:
        try:
            status = read_stream_status(settings)
        except KafkaUnavailableError as error:
            raise ProblemError(503, "not-ready", str(error), retry_after_s=5) from error
        return Response(stream_exposition(status), content_type=PROMETHEUS_TYPE)

    return blueprint


def not_ready_reasons(lookups: Lookups, max_age_s: float) -> list[str]:
    """Return the reasons why this node should not receive requests; empty when it is ready."""
    state = lookups.local.state()
    if state is None:
        return ["The materializer has not started yet."]
    reasons = []
    if state.age_s() > max_age_s:
        reasons.append(f"The materializer has not updated its state for {state.age_s():.0f} s.")
    if not state.models:
        reasons.append(state.waiting_for or "The version registry has no read model yet.")
    for model in state.models.values():
        if model.live is None:
            reasons.append(f"{model.name} has no live version.")
            continue
        if not model.owners:
            reasons.append(f"No partition of {model.source_topic} has an owner yet.")
        held = model.versions[model.live].partitions
        waiting = sorted(p for p in model.owned if p not in held or not held[p].is_ready)
        if waiting:
            reasons.append(f"{model.name} v{model.live}: partitions {waiting} are still being read.")
    return reasons


def _peer_reports(lookups: Lookups) -> list[PartitionReport]:
    """Return the other nodes' reports of their partitions; omits nodes that do not answer."""
    state = lookups.local.state()
    reports: list[PartitionReport] = []
    for url in sorted(state.nodes) if state else []:
        peer = lookups.peers.at(url)
        if state is None or url == state.url or peer.is_down:
            continue
        try:
            response = peer.get(PARTITIONS_PATH, HOP_ANY)
            reports += [PartitionReport.from_json(fields) for fields in json.loads(response.body)]
        except (PeerDownError, ValueError, TypeError, KeyError):
            continue
    return reports


def _json(value: object) -> Response:
    return Response(dumps(value), content_type="application/json")
