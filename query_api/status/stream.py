"""The section `stream`: the stream driver, and each of its queries with lag, rate and pace."""

from collections.abc import Iterator
from typing import Any

from include.declarations.latency import Latency
from include.stream.checkpoints import emission_query_name, query_name
from include.stream.launch_series import read as read_failed_launches
from include.stream.phase import Phase
from include.stream.query_reports import QueryStatus
from include.stream.status import StreamStatus, read_stream_status
from query_api.status.node_view import NodeView


def read(view: NodeView) -> dict[str, Any]:
    """Return the state of the stream and its queries; raises KafkaUnavailableError."""
    view.require_kafka()
    status = read_stream_status(view.settings)
    measured = dict(_measured(status, view))
    failed = read_failed_launches(view.settings.home)
    return {
        "state": status.state,
        "pace": view.settings.stream.pace,
        "events_behind": status.events_behind,
        "newest_event_age_s": status.newest_event_age_s,
        "dead_letters": status.dead_letters,
        "stuck_dead_letters": [letters.source_topic for letters in status.stuck_dead_letters],
        "open_transactions": [
            {"source_topic": held.topic, "records": held.records, "open_s": held.open_s}
            for held in status.open_transactions
        ],
        "event_times_ahead": [
            {
                "read_model": version.read_model,
                "version": version.version,
                "event": version.event_time_ahead.event,
                "ahead_s": version.event_time_ahead.ahead_s,
            }
            for version in status.versions
            if version.event_time_ahead is not None
        ],
        "still": [
            {"read_model": version.read_model, "version": version.version, "still_s": version.still_s}
            for version in status.versions
            if version.still_s is not None
        ],
        "failed_launches": None
        if failed is None
        else {"failures": failed.failures, "since": failed.since, "last_error": failed.last_error},
        "queries": [_query(query, measured.get(query.query, {})) for query in _in_order(status)],
    }


def _in_order(status: StreamStatus) -> list[QueryStatus]:
    return sorted(status.queries, key=lambda query: query.query)


def _query(query: QueryStatus, measured: dict[str, Any]) -> dict[str, Any]:
    return {
        "query": query.query,
        "kind": "dead letters" if query.query.endswith(".dead-letter") else "query",
        "what": query.query,
        "events_behind": None,
        "emit_every_s": None,
        "phase": query.phase,
        "in_batches": query.phase == Phase.BATCHES,
        "rate_per_s": query.last_batch.get("processed_rows_per_s"),
        "finished_at": query.last_batch.get("finished_at") or None,
        "task_slots": query.task_slots,
        "restarts": query.restarts,
        "failing_for_s": query.failing_for_s,
        "last_error": query.last_error,
        **measured,
    }


def _measured(status: StreamStatus, view: NodeView) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of each query, and what is known of what it computes."""
    for version in status.versions:
        yield (
            query_name(version.read_model, version.version),
            {
                "kind": "fold",
                "what": f"{version.read_model} v{version.version}, {version.stage}",
                "events_behind": version.events_behind,
                "emit_every_s": version.emit_every_s,
                "in_batches": version.latency == Latency.SECOND,
            },
        )
    routes = {route.versioned_name: route.query_name for route in view.catalog.routes.values()}
    for route in status.routes:
        yield (
            routes.get(route.route, route.route),
            {
                "kind": "route",
                "what": f"{route.source_topic} → {route.output_topic}",
                "events_behind": route.events_behind,
                "in_batches": route.latency == Latency.SECOND,
            },
        )
    for emission in status.emissions:
        name = emission_query_name(emission.emission, emission.version)
        fields = {
            "kind": "emission",
            "what": f"{emission.read_model} v{emission.version} → {emission.output_topic}",
            "events_behind": emission.events_behind,
        }
        yield name, fields
        yield f"{name}/live", fields
