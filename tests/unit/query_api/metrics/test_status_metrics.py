"""Stream, servers and lake as metrics: what cannot be read has no value."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from include.kafka.record_ends import OpenTransaction
from include.status.flow_status import QUIET_S, FlowKind, FlowStatus, SourceStatus, StreamStatus
from include.stream.folded_offsets import EventTimeAhead
from include.stream.query_reports import BatchProgress, Phase, QueryReport
from query_api.metrics.status_metrics import status_exposition, stream_exposition

QUERY = QueryReport(
    "balance/v1", "real time", 2, "", 4711, "local[28]", 0.5, BatchProgress(state_rows=42, dropped_events=5)
)
FOLD = FlowStatus(
    query="balance/v1",
    kind=FlowKind.FOLD,
    name="balance",
    belongs_to="balance",
    version=1,
    stage="live",
    source_topic="balance",
    events=1_000,
    events_behind=7,
    newest_event_age_s=2.5,
    report=QUERY,
)
SOURCE = SourceStatus("balance", 3)
STATUS = StreamStatus((FOLD,), (SOURCE,))


def lines(*flows: FlowStatus, source: SourceStatus = SOURCE) -> list[str]:
    return stream_exposition(StreamStatus(flows, (source,))).decode().splitlines()


def test_every_metric_has_its_labels() -> None:
    version = 'read_model="balance",stage="live",version="1"'
    query = 'phase="real time",query="balance/v1"'
    assert {
        'foldlake_stream_up{state="running"} 1.0',
        f"foldlake_stream_events{{{version}}} 1000.0",
        f"foldlake_stream_events_behind{{{version}}} 7.0",
        f"foldlake_stream_newest_event_age_seconds{{{version}}} 2.5",
        'foldlake_stream_dead_letters{source_topic="balance"} 3.0',
        'foldlake_stream_dead_letters_stuck_seconds{source_topic="balance"} 0.0',
        f"foldlake_stream_state_rows{{{query}}} 42.0",
        f"foldlake_stream_dropped_events{{{query}}} 5.0",
        f"foldlake_stream_query_restarts{{{query}}} 2.0",
        'foldlake_stream_query_failing_seconds{query="balance/v1"} 0.0',
    } <= set(lines(FOLD))


def test_query_that_has_waited_since_the_driver_started_has_no_state_to_report() -> None:
    started = replace(QUERY, phase=Phase.WAITING, last_batch=BatchProgress())
    labels = '{phase="waiting for events",query="balance/v1"}'
    found = lines(replace(FOLD, report=started))
    assert f"foldlake_stream_query_restarts{labels} 2.0" in found
    assert f"foldlake_stream_state_rows{labels} 0.0" not in found

    since = replace(started, last_batch=BatchProgress(state_rows=42, finished_at="2026-11-29T10:00:00+00:00"))
    assert f"foldlake_stream_state_rows{labels} 42.0" in lines(replace(FOLD, report=since))


def test_routes_and_emissions_have_their_lag() -> None:
    route = FlowStatus(
        "route/invoices", FlowKind.ROUTE, "invoices", stage="live", events=900, events_behind=4
    )
    emission = replace(FOLD, kind=FlowKind.EMISSION, name="totals", events_behind=5)
    candidate = replace(emission, version=2, stage="candidate", events_behind=6)

    found = lines(FOLD, route, emission, candidate)

    behind = "foldlake_stream_output_events_behind"
    assert f'{behind}{{kind="route",name="invoices",stage="live",version=""}} 4.0' in found
    assert f'{behind}{{kind="emission",name="totals",stage="live",version="1"}} 5.0' in found
    assert f'{behind}{{kind="emission",name="totals",stage="candidate",version="2"}} 6.0' in found
    assert (
        'foldlake_stream_output_events{kind="route",name="invoices",stage="live",version=""} 900.0' in found
    )


def test_a_flow_whose_topics_do_not_exist_has_no_lag() -> None:
    route = FlowStatus("route/invoices", FlowKind.ROUTE, "invoices", stage="live")

    assert not [line for line in lines(route) if line.startswith("foldlake_stream_output_events")]


def test_folds_that_stand_still_are_measured() -> None:
    found = lines(replace(FOLD, still_s=61.5), replace(FOLD, version=2))

    name = "foldlake_stream_standing_still_seconds"
    assert f'{name}{{read_model="balance",stage="live",version="1"}} 61.5' in found
    assert f'{name}{{read_model="balance",stage="live",version="2"}} 0.0' in found


def test_open_transactions_and_event_times_in_the_future_are_measured() -> None:
    version = 'foldlake_stream_event_time_ahead_seconds{read_model="balance",stage="live",version="1"}'
    topic = 'foldlake_stream_open_transaction_seconds{source_topic="balance"}'
    ahead = replace(FOLD, event_time_ahead=EventTimeAhead("partition=3, offset=8", 90.5))
    held = replace(SOURCE, open_transaction=OpenTransaction("balance", 12, 45.5))

    assert {f"{version} 0.0", f"{topic} 0.0"} <= set(lines(FOLD))
    assert {f"{version} 90.5", f"{topic} 45.5"} <= set(lines(ahead, source=held))


def test_a_stopped_stream_is_down() -> None:
    assert 'foldlake_stream_up{state="not running"} 0.0' in lines(replace(FOLD, report=None))


def test_dead_letters_that_are_not_written_show_for_how_long() -> None:
    metric = 'foldlake_stream_dead_letters_stuck_seconds{source_topic="balance"}'

    assert f"{metric} 90.5" in lines(FOLD, source=replace(SOURCE, stuck_for_s=90.5))


def test_the_rate_of_a_quiet_query_is_0() -> None:
    def rate(
        batch_age_s: float,
        newest_event_age_s: float,
        events_behind: int,
        newest_output_age_s: float | None = None,
    ) -> str:
        finished_at = datetime.now(UTC) - timedelta(seconds=batch_age_s)
        batch = BatchProgress(processed_rows_per_s=2474.0, finished_at=finished_at.isoformat())
        report = replace(QUERY, last_batch=batch)
        flow = replace(
            FOLD,
            report=report,
            newest_event_age_s=newest_event_age_s,
            newest_output_age_s=newest_output_age_s,
            events_behind=events_behind,
        )
        (line,) = (one for one in lines(flow) if one.startswith("foldlake_stream_processed_rows_per_second{"))
        return line.split()[-1]

    old_s = QUIET_S + 5
    assert rate(old_s, old_s, events_behind=0) == "0.0"
    assert rate(old_s, old_s, events_behind=9) == "2474.0", "a batch of a catch-up takes long"
    assert rate(old_s, 1.0, events_behind=0) == "2474.0", "in real time, a batch takes a minute"
    assert rate(1.0, old_s, events_behind=0) == "2474.0", "the batch has just ended"
    assert rate(old_s, old_s, events_behind=0, newest_output_age_s=1.0) == "2474.0", (
        "old events are folded now"
    )


SERVICES = [{"service": "Kafka", "is_up": True}, {"service": "Schema registry", "is_up": False}]
TABLE = {"table": "balance", "exists": True, "bytes": 4_096, "age_s": 12.5, "events_behind": 7}


def lines_of(services: dict[str, Any], lake: dict[str, Any]) -> list[str]:
    text = status_exposition({"services": services, "lake": lake}).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


def section(data: object, error: str | None = None) -> dict[str, Any]:
    return {"as_of": None, "age_s": 1.0, "error": error, "data": data}


def test_servers_and_tables_have_their_metrics() -> None:
    assert lines_of(section(SERVICES), section([TABLE])) == [
        'foldlake_status_error{section="services"} 0.0',
        'foldlake_status_error{section="lake"} 0.0',
        'foldlake_service_up{service="Kafka"} 1.0',
        'foldlake_service_up{service="Schema registry"} 0.0',
        'foldlake_lake_table_age_seconds{table="balance"} 12.5',
        'foldlake_lake_events_behind{table="balance"} 7.0',
        'foldlake_lake_table_bytes{table="balance"} 4096.0',
    ]


def test_a_table_that_does_not_exist_and_an_unknown_lag_have_no_value() -> None:
    missing = {"table": "parcels", "exists": False}
    unknown = TABLE | {"age_s": None, "events_behind": None}

    assert lines_of(section([]), section([missing, unknown]))[2:] == [
        'foldlake_lake_table_bytes{table="balance"} 4096.0'
    ]


def test_what_was_read_before_an_error_is_no_value() -> None:
    assert lines_of(section(SERVICES, "no answer"), section(None)) == [
        'foldlake_status_error{section="services"} 1.0',
        'foldlake_status_error{section="lake"} 0.0',
    ]
