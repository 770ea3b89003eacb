"""Endpoints for operations: liveness, readiness, partition status and metrics."""

import os

from flask import Blueprint, Response, request

from include.errors import KafkaUnavailableError
from include.nodes.partition_report import PARTITIONS_PATH
from include.nodes.peers import HOP_HEADER
from include.quality.newest_checks import newest_checks
from include.quality.verified_stores import read_all
from include.settings import Settings
from include.status.measurement import read_stream_status
from query_api.http.answers import CACHE_CONTROL, metrics_response
from query_api.http.delivery.field_names import document_response
from query_api.http.json_text import dumps
from query_api.http.limits.rate_limit import client_of
from query_api.http.limits.worker_watchdog import WORKER_HEADER
from query_api.http.problems import ProblemError, busy_problem
from query_api.listener import served_certificates
from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError
from query_api.lookup.lookups import Lookups
from query_api.lookup.partition_status import local_reports, merged, peer_reports
from query_api.metrics.node_metrics import NodeReading, node_exposition
from query_api.metrics.status_metrics import stream_exposition
from query_api.status.node_view import readiness

# Each reading of the stream's status occupies a thread for a second, and longer while Kafka does not answer.
STREAM_READINGS = 4


def health_blueprint(settings: Settings, lookups: Lookups) -> Blueprint:
    """Return these endpoints as a Flask blueprint."""
    blueprint = Blueprint("operations", __name__)
    stream_readings = ClientSlots(STREAM_READINGS, client_share=1.0)

    @blueprint.get("/healthz")
    def healthz() -> Response:
        response = _json({"status": "alive", "node": settings.node.name})
        response.headers[WORKER_HEADER] = str(os.getpid())
        return response

    @blueprint.get("/readyz")
    def readyz() -> Response:
        found = readiness(lookups.local.state(), settings.node)
        if found.not_ready:
            reasons = list(found.not_ready)
            raise ProblemError(503, "not-ready", " ".join(reasons), retry_after_s=1, reasons=reasons)
        if found.degraded:
            reasons = list(found.degraded)
            return _json({"status": "degraded", "node": settings.node.name, "reasons": reasons})
        return _json({"status": "ready", "node": settings.node.name})

    @blueprint.get(PARTITIONS_PATH)
    def partitions() -> Response:
        reports = local_reports(lookups.local)
        if HOP_HEADER not in request.headers:
            state = lookups.local.state()
            reports = merged(reports, [] if state is None else peer_reports(lookups.peers, state))
        return document_response([report.as_json() for report in reports], request)

    @blueprint.get("/metrics")
    def metrics() -> Response:
        return metrics_response(node_exposition(_reading(settings, lookups)))

    @blueprint.get("/metrics/stream")
    def stream_metrics() -> Response:
        return _stream_metrics(settings, stream_readings)

    return blueprint


def _stream_metrics(settings: Settings, readings: ClientSlots) -> Response:
    try:
        with readings.slot(client_of(request.environ)):
            status = read_stream_status(settings)
    except NoFreeSlotError as error:
        raise busy_problem(error, "too-many-requests", retry_after_s=5) from error
    except KafkaUnavailableError as error:
        raise ProblemError(503, "not-ready", str(error), retry_after_s=5) from error
    return metrics_response(stream_exposition(status))


def _reading(settings: Settings, lookups: Lookups) -> NodeReading:
    state = lookups.local.state()
    models = () if state is None else state.models.values()
    live = {model.name: model.live for model in models if model.live is not None}
    return NodeReading(
        state=state,
        is_ready=not readiness(state, settings.node).not_ready,
        reports=local_reports(lookups.local),
        verified=read_all(settings.home),
        checks=newest_checks(settings.home, live, live).values(),
        store_dir=settings.store_dir,
        certificates=served_certificates(settings),
    )


def _json(value: object) -> Response:
    return Response(dumps(value), content_type="application/json", headers=dict([CACHE_CONTROL]))
