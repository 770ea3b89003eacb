"""The document of the stream: its state, and what it says as JSON."""

import json
from dataclasses import replace

import pytest

from include.declarations.latency import Latency
from include.kafka.record_ends import OpenTransaction
from include.status.flow_status import FlowKind, FlowStatus, SourceStatus, StreamStatus
from include.stream.query_reports import Phase, QueryReport

REPORT = QueryReport("balance/v1", Phase.REAL_TIME, 0, "", 4711, "local", 0.5)
FOLD = FlowStatus(
    REPORT.query, FlowKind.FOLD, "balance", "balance", 1, "live", events_behind=7, report=REPORT
)


@pytest.mark.parametrize(
    ("phases", "state"),
    [
        ((), "not running"),
        ((Phase.REAL_TIME, Phase.BATCHES), "running"),
        ((Phase.REAL_TIME, Phase.STARTING), "catching up"),
        ((Phase.CATCHING_UP, Phase.FAILED), "failing"),
        ((Phase.REAL_TIME, Phase.REFUSED), "failing"),
    ],
)
def test_the_state_is_that_of_the_worst_query(phases: tuple[Phase, ...], state: str) -> None:
    flows = tuple(replace(FOLD, report=replace(REPORT, phase=phase)) for phase in phases)

    assert StreamStatus((*flows, replace(FOLD, report=None))).state == state


def test_folds_that_stand_still_are_the_state_of_a_stream_that_runs() -> None:
    assert StreamStatus((replace(FOLD, still_s=9.0),)).state == "standing still"
    assert StreamStatus((replace(FOLD, still_s=9.0, report=None),)).state == "not running"


def test_sums_of_a_stream_leave_out_what_is_not_measured() -> None:
    route = FlowStatus("route/postings", FlowKind.ROUTE, "postings", newest_event_age_s=3.0)
    status = StreamStatus((FOLD, route), (SourceStatus("balance", 3), SourceStatus("pos", 4)))

    assert (status.events_behind, status.newest_event_age_s, status.dead_letters) == (7, 3.0, 7)
    assert StreamStatus().newest_event_age_s is None


def test_the_json_has_flows_sources_and_what_follows_from_them() -> None:
    source = SourceStatus("balance", 3, open_transaction=OpenTransaction("balance", 12, 45.5))
    status = StreamStatus((replace(FOLD, latency=Latency.SECOND),), (source,))

    found = json.loads(json.dumps(status.to_json()))

    assert (found["state"], found["driver_pid"], found["dead_letters"]) == ("running", 4711, 3)
    (flow,) = found["flows"]
    assert (flow["kind"], flow["latency"], flow["rate_per_s"]) == ("fold", "second", None)
    assert flow["report"]["phase"] == "real time"
    assert found["sources"][0]["open_transaction"] == {"topic": "balance", "records": 12, "open_s": 45.5}
