"""Metrics of the stream, the servers and the lake, for Prometheus.

Those of the stream are measured on its topics, so they are the same on every node. Those of the servers and the lake are sections of the
status document, which are read in the background.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from include.status.flow_status import FlowKind, FlowStatus, StreamStatus
from include.stream.query_reports import Phase
from query_api.metrics.gauges import Gauges, exposition


def stream_exposition(status: StreamStatus) -> bytes:
    """Return the stream's metrics in Prometheus' text format."""
    return exposition((*_stream(status), *_outputs(status), *_queries(status)))


def _stream(status: StreamStatus) -> Iterator[Metric]:
    stream = Gauges(["state"], [([status.state], status)])
    yield stream.of(
        "foldlake_stream_up",
        "1 while the stream driver is running.",
        lambda one: float(one.driver_pid is not None),
    )
    folds = status.of_kind(FlowKind.FOLD)
    versions = Gauges(
        ["read_model", "version", "stage"], [([f.name, str(f.version), f.stage], f) for f in folds]
    )
    yield versions.of(
        "foldlake_stream_events",
        "Source events of the version, folded or not, since its start.",
        lambda fold: fold.events,
    )
    yield versions.of(
        "foldlake_stream_events_behind",
        "Source events not yet in the changelog.",
        lambda fold: fold.events_behind,
    )
    yield versions.of(
        "foldlake_stream_newest_event_age_seconds",
        "Time since the newest event was appended to the source topic.",
        lambda fold: fold.newest_event_age_s,
    )
    yield versions.of(
        "foldlake_stream_standing_still_seconds",
        "Time for which events have waited and none was folded; 0 while the folds keep up.",
        lambda fold: fold.still_s or 0.0,
    )
    yield versions.of(
        "foldlake_stream_event_time_ahead_seconds",
        "How far an event time among the newest state records is ahead of the time at which its event was appended; 0 if none is.",
        lambda fold: 0.0 if fold.event_time_ahead is None else fold.event_time_ahead.ahead_s,
    )
    sources = Gauges(["source_topic"], [([source.topic], source) for source in status.sources])
    yield sources.of(
        "foldlake_stream_dead_letters", "Records on the dead-letter topic.", lambda one: one.dead_letters
    )
    yield sources.of(
        "foldlake_stream_dead_letters_stuck_seconds",
        "How long dead letters have not been written because their query fails; 0 while they are.",
        lambda one: one.stuck_for_s,
    )
    yield sources.of(
        "foldlake_stream_open_transaction_seconds",
        "How long a producer's transaction has been open, behind which events wait; 0 if none is open for long.",
        lambda one: 0.0 if one.open_transaction is None else one.open_transaction.open_s,
    )


def _outputs(status: StreamStatus) -> Iterator[Metric]:
    def labels(flow: FlowStatus) -> list[str]:
        return [str(flow.kind), flow.name, str(flow.version or ""), flow.stage]

    outputs = Gauges(["kind", "name", "version", "stage"], [(labels(flow), flow) for flow in status.outputs])
    yield outputs.of(
        "foldlake_stream_output_events",
        "Source events of the route, emission or other flow, read or not.",
        lambda flow: flow.events,
    )
    yield outputs.of(
        "foldlake_stream_output_events_behind",
        "Source events that the route, emission or other flow has not read yet.",
        lambda flow: flow.events_behind,
    )


def _queries(status: StreamStatus) -> Iterator[Metric]:
    reported = [(flow.report, flow.rate_per_s) for flow in status.flows if flow.report is not None]
    rates = Gauges(["query", "phase"], [([report.query, report.phase], rate) for report, rate in reported])
    yield rates.of(
        "foldlake_stream_processed_rows_per_second",
        "Rows processed per second in the last completed batch; 0 while the query is quiet.",
        lambda rate_per_s: rate_per_s or 0.0,
    )
    queries = Gauges(["query", "phase"], [([one.query, one.phase], one) for one in status.reports])
    # A query that has waited for events since the driver started has not reported its state.
    with_state = Gauges(
        ["query", "phase"],
        [
            ([one.query, one.phase], one.last_batch)
            for one in status.reports
            if one.phase != Phase.WAITING or one.last_batch.finished_at
        ],
    )
    yield with_state.of(
        "foldlake_stream_state_rows", "Keys in the query's state.", lambda batch: batch.state_rows
    )
    yield with_state.of(
        "foldlake_stream_state_bytes",
        "Memory used by the query's state.",
        lambda batch: batch.state_bytes,
    )
    yield queries.of(
        "foldlake_stream_query_restarts",
        "Restarts of the query since the driver started.",
        lambda one: one.restarts,
    )
    yield queries.of(
        "foldlake_stream_dropped_events",
        "Events not folded because their state was forgotten, since the driver started.",
        lambda one: one.last_batch.dropped_events,
    )
    yield Gauges(["query"], [([one.query], one) for one in status.reports]).of(
        "foldlake_stream_query_failing_seconds",
        "How long the query has failed again and again or been refused; 0 once it runs steadily.",
        lambda one: one.failing_for_s,
    )


SERVICES, LAKE = "services", "lake"
SECTIONS = (SERVICES, LAKE)
"""The sections of the status document that have metrics here."""


def status_exposition(sections: Mapping[str, Mapping[str, Any]]) -> bytes:
    """Return the metrics of these sections of the status document (name -> its content) in Prometheus' text format."""
    return exposition(_metrics(sections))


def _metrics(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    yield Gauges(["section"], [([name], section) for name, section in sections.items()]).of(
        "foldlake_status_error",
        "1 when this node could not read the section of the status; the section's metrics are then missing.",
        lambda section: float(section["error"] is not None),
    )
    services = _entries(sections[SERVICES])
    yield Gauges(["service"], [([one["service"]], one) for one in services]).of(
        "foldlake_service_up", "1 when the server answers this node.", lambda one: float(one["is_up"])
    )
    existing = [table for table in _entries(sections[LAKE]) if table["exists"]]
    tables = Gauges(["table"], [([table["table"]], table) for table in existing])
    yield tables.of(
        "foldlake_lake_table_age_seconds",
        "Time since Foldlake's newest commit; it grows while there are no events.",
        lambda table: table["age_s"],
    )
    yield tables.of(
        "foldlake_lake_events_behind",
        "Source events after those that the table of a read model contains.",
        lambda table: table["events_behind"],
    )
    yield tables.of(
        "foldlake_lake_table_bytes", "Size of the table's current files.", lambda table: table["bytes"]
    )


def _entries(section: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the entries of a section; none if its last reading failed: what was read before may be wrong by now."""
    return [] if section["error"] is not None or section["data"] is None else section["data"]
