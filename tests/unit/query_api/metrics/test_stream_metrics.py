"""The stream's status in Prometheus' text format."""

from dataclasses import replace

from include.kafka.ends.open_transactions import OpenTransaction
from include.stream.folded_offsets import EventTimeAhead
from include.stream.output_status import EmissionStatus, RouteStatus
from include.stream.query_reports import QueryStatus
from include.stream.status import StreamStatus, StuckDeadLetters, VersionStatus
from query_api.metrics.stream_metrics import stream_exposition

VERSION = VersionStatus("balance", 1, "live", "balance", 1_000, 7, 2.5, 0.1, 3, "milliseconds")
QUERY = QueryStatus(
    "balance/v1", "real time", 2, "", 4711, "local[28]", 0.5, {"state_rows": 42, "dropped_events": 5}
)
STATUS = StreamStatus("running", 4711, 7, 2.5, 3, (VERSION,), (QUERY,), dead_letters_of={"balance": 3})


def test_every_metric_has_its_labels() -> None:
    lines = stream_exposition(STATUS).decode().splitlines()
    assert 'foldlake_stream_up{state="running"} 1.0' in lines
    assert 'foldlake_stream_events_behind{read_model="balance",stage="live",version="1"} 7.0' in lines
    assert (
        'foldlake_stream_newest_event_age_seconds{read_model="balance",stage="live",version="1"} 2.5' in lines
    )
    assert 'foldlake_stream_dead_letters{source_topic="balance"} 3.0' in lines
    assert 'foldlake_stream_state_rows{phase="real time",query="balance/v1"} 42.0' in lines
    assert 'foldlake_stream_dropped_events{phase="real time",query="balance/v1"} 5.0' in lines
    assert 'foldlake_stream_query_restarts{phase="real time",query="balance/v1"} 2.0' in lines
    assert 'foldlake_stream_events{read_model="balance",stage="live",version="1"} 1000.0' in lines
    assert 'foldlake_stream_query_failing_seconds{query="balance/v1"} 0.0' in lines


def test_routes_and_emissions_have_their_lag() -> None:
    outputs = replace(
        STATUS,
        routes=(RouteStatus("invoices", "pos", "loyalty", "milliseconds", 900, 4, 500),),
        emissions=(
            EmissionStatus("totals", "balance", 1, "totals", 1_000, 5, 1_000),
            EmissionStatus("totals", "balance", 2, "totals.v2", 1_000, 6, 994),
        ),
        versions=(VERSION, replace(VERSION, version=2, stage="candidate")),
    )

    lines = stream_exposition(outputs).decode().splitlines()

    behind = "foldlake_stream_output_events_behind"
    assert f'{behind}{{kind="route",name="invoices",stage="live",version=""}} 4.0' in lines
    assert f'{behind}{{kind="emission",name="totals",stage="live",version="1"}} 5.0' in lines
    assert f'{behind}{{kind="emission",name="totals",stage="candidate",version="2"}} 6.0' in lines
    events = 'foldlake_stream_output_events{kind="route",name="invoices",stage="live",version=""}'
    assert f"{events} 900.0" in lines


def test_a_topic_that_only_a_route_reads_has_its_dead_letters() -> None:
    status = replace(STATUS, dead_letters_of={"balance": 3, "pos": 8})

    lines = stream_exposition(status).decode().splitlines()

    assert 'foldlake_stream_dead_letters{source_topic="pos"} 8.0' in lines
    assert 'foldlake_stream_dead_letters_stuck_seconds{source_topic="pos"} 0.0' in lines


def test_folds_that_stand_still_are_measured() -> None:
    still = replace(STATUS, versions=(replace(VERSION, still_s=61.5), replace(VERSION, version=2)))

    lines = stream_exposition(still).decode().splitlines()

    name = "foldlake_stream_standing_still_seconds"
    assert f'{name}{{read_model="balance",stage="live",version="1"}} 61.5' in lines
    assert f'{name}{{read_model="balance",stage="live",version="2"}} 0.0' in lines


def test_open_transactions_and_event_times_in_the_future_are_measured() -> None:
    version = 'foldlake_stream_event_time_ahead_seconds{read_model="balance",stage="live",version="1"}'
    topic = 'foldlake_stream_open_transaction_seconds{source_topic="balance"}'
    ahead = replace(VERSION, event_time_ahead=EventTimeAhead("partition=3, offset=8", 90.5))
    found = replace(STATUS, versions=(ahead,), open_transactions=(OpenTransaction("balance", 12, 45.5),))

    lines = stream_exposition(STATUS).decode().splitlines()
    assert {f"{version} 0.0", f"{topic} 0.0"} <= set(lines)
    lines = stream_exposition(found).decode().splitlines()
    assert {f"{version} 90.5", f"{topic} 45.5"} <= set(lines)


def test_a_stopped_stream_is_down() -> None:
    status = StreamStatus("not running", None, 0, None, 0, (), ())
    assert 'foldlake_stream_up{state="not running"} 0.0' in stream_exposition(status).decode()


def test_dead_letters_that_are_not_written_show_for_how_long() -> None:
    metric = 'foldlake_stream_dead_letters_stuck_seconds{source_topic="balance"}'
    stuck = replace(STATUS, stuck_dead_letters=(StuckDeadLetters("balance", 90.5),))

    assert f"{metric} 0.0" in stream_exposition(STATUS).decode().splitlines()
    assert f"{metric} 90.5" in stream_exposition(stuck).decode().splitlines()
