"""Each alert fires on what a node in trouble really exports, and none on what a healthy system exports."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from include.kafka.record_ends import OpenTransaction
from include.stream.folded_offsets import EventTimeAhead
from include.stream.query_reports import BatchProgress
from tests.unit.monitoring.exported import (
    BALANCE,
    DAY_S,
    EMISSION,
    FOLD,
    LIVE,
    POS,
    QUERY,
    ROUTE,
    STREAM,
    System,
    check,
    lake,
    node_state,
    section,
    sections,
    services,
    stream_with,
    verified,
)
from tests.unit.monitoring.promtool import RuleTest, needs_promtool, run_rules, series
from tests.unit.monitoring.test_rules import ALERTS

STOPPED = stream_with(replace(FOLD, report=None))
FAILING = stream_with(replace(FOLD, report=replace(QUERY, phase="failed", failing_for_s=400.0)))
BEHIND = 2_000
# What is wrong -> the alerts that fire, each without the prefix "Foldlake".
PROBLEMS: Mapping[str, tuple[Callable[[], System], set[str]]] = {
    "nothing": (System, set()),
    "the node is down": (
        lambda: System(state=None, stream=None, sections=None),
        {"NoNodeReady", "NodeDown", "StreamUnknown"},
    ),
    "a partition is being read": (
        lambda: System(state=node_state(is_ready=False)),
        {"NoNodeReady", "NodeNotReady", "PartitionUnavailable"},
    ),
    "no version is live": (
        lambda: System(state=node_state(live=None)),
        {"NoNodeReady", "NodeNotReady", "NoLiveVersion"},
    ),
    "lookups fail": (lambda: System(lookups={"ok": 100, "not-ready": 5}), {"LookupsFailing"}),
    "clients make wrong requests": (
        lambda: System(lookups={"unknown-key": 100, "not-up-to-bound": 50}),
        set(),
    ),
    "lookups are slow": (lambda: System(lookup_s=0.8), {"LookupsSlow"}),
    "commands fail": (lambda: System(commands={"accepted": 100, "log-unavailable": 5}), {"CommandsFailing"}),
    "commands are rejected": (
        lambda: System(commands={"accepted": 9, "too-many-commands": 5}),
        {"CommandsRejected"},
    ),
    "the node does not reach Kafka": (lambda: System(state=node_state(confirmed_s_ago=45.0)), {"AnswersOld"}),
    "the folds stand still": (
        lambda: System(state=node_state(replace(LIVE, still_since=time.time() - 90.0), confirmed_s_ago=90.0)),
        # Not ready beyond FOLDLAKE_NODE_MAX_AGE_S. Old answers have another cause.
        {"FoldsStandStill", "NoNodeReady", "NodeNotReady"},
    ),
    "the disk is full": (
        lambda: System(state=node_state(replace(LIVE, write_error="No space left."))),
        {"StoreNotWritable"},
    ),
    "the disk is almost full": (lambda: System(disk_free=0.08), {"DiskAlmostFull"}),
    "a certificate ends soon": (lambda: System(certificate_days=13.0), {"CertificateEndsSoon"}),
    "a certificate has ended": (
        lambda: System(certificate_days=-1.0),
        {"CertificateEndsSoon", "CertificateEnds"},
    ),
    "a foreign record is in the changelog": (
        lambda: System(state=node_state(replace(LIVE, bad_records=1))),
        {"BadChangelogRecords"},
    ),
    "the driver is stopped": (lambda: System(stream=STOPPED), {"StreamDown"}),
    "the stream cannot be read": (lambda: System(stream=None), {"StreamUnknown"}),
    "a query fails": (lambda: System(stream=FAILING), {"QueryFailing"}),
    "a candidate catches up": (
        lambda: System(stream=stream_with(replace(FOLD, stage="candidate", events_behind=BEHIND))),
        set(),
    ),
    "the folds lag": (
        lambda: System(stream=stream_with(replace(FOLD, events_behind=BEHIND))),
        {"StreamLag"},
    ),
    "a route lags": (
        lambda: System(stream=stream_with(route=replace(ROUTE, events_behind=BEHIND))),
        {"OutputLag"},
    ),
    "an emission lags": (
        lambda: System(stream=stream_with(emission=replace(EMISSION, events_behind=BEHIND))),
        {"OutputLag"},
    ),
    "dead letters are not written": (
        lambda: System(stream=replace(STREAM, sources=(BALANCE, replace(POS, stuck_for_s=400.0)))),
        {"DeadLettersStuck"},
    ),
    "a transaction is open": (
        lambda: System(
            stream=replace(
                STREAM,
                sources=(replace(BALANCE, open_transaction=OpenTransaction("balance", 9, 150.0)), POS),
            )
        ),
        {"TransactionOpen"},
    ),
    "a producer's clock is ahead": (
        lambda: System(
            stream=stream_with(replace(FOLD, event_time_ahead=EventTimeAhead("partition=0, offset=1", 90.0)))
        ),
        {"EventTimeAhead"},
    ),
    "events came too late": (
        lambda: System(
            stream=stream_with(
                replace(FOLD, report=replace(QUERY, last_batch=BatchProgress(dropped_events=1)))
            )
        ),
        {"EventsDropped"},
    ),
    "a check failed": (lambda: System(checks=(check(passed=False),)), {"CheckFailed"}),
    "a read model cannot be checked": (lambda: System(checks=(check(passed=None),), verified=()), set()),
    "full checks do not run": (lambda: System(verified=(verified(2 * DAY_S),)), {"CheckOverdue"}),
    "compactions fail": (lambda: System(sections=sections(lake=lake(9_000.0, 1))), {"LakeBehind"}),
    "no event since hours": (lambda: System(sections=sections(lake=lake(9_000.0, 0))), set()),
    "Kafka is down": (lambda: System(sections=sections(services=services(kafka=False))), {"KafkaDown"}),
    "the registry is down": (
        lambda: System(sections=sections(services=services(registry=False))),
        {"RegistryDown"},
    ),
    "Airflow is down": (lambda: System(sections=sections(services=services(airflow=False))), {"AirflowDown"}),
    "the lake cannot be read": (
        lambda: System(sections=sections(lake=section([], "Permission denied"))),
        {"StatusUnknown"},
    ),
}
# These depend on a change, or on a day.
IN_TIME = {"DeadLetters", "NeverChecked"}


@pytest.fixture(autouse=True)
def shared_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the workers' counters, of which a node's page is the sum."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))


def test_each_alert_has_a_problem() -> None:
    fired = set().union(*(alerts for _, alerts in PROBLEMS.values())) | IN_TIME

    assert {f"Foldlake{name}" for name in fired} == ALERTS.keys()


def constant(system: System, times: int) -> list[dict[str, str]]:
    """Return the series of a system whose state stays."""
    return [
        *(series(key, f"{value:f}+0x{times}") for key, value in system.gauges().items()),
        *(series(key, f"0+{increase:f}x{times}") for key, increase in system.counters().items()),
    ]


@needs_promtool
def test_exactly_these_alerts_fire(tmp_path: Path) -> None:
    tests = [
        RuleTest(problem, constant(system(), 40), "40m", {f"Foldlake{name}" for name in alerts})
        for problem, (system, alerts) in PROBLEMS.items()
    ]

    run_rules(tmp_path, tests)


@needs_promtool
def test_new_dead_letters_fire_for_a_quarter_of_an_hour(tmp_path: Path) -> None:
    before = System().gauges()
    after = System(stream=replace(STREAM, sources=(replace(BALANCE, dead_letters=5), POS))).gauges()
    changes = [key for key in before if key[0] == "foldlake_stream_dead_letters"]
    steps = [series(key, f"{before[key]:f}+0x19 {after[key]:f}+0x30") for key in changes]
    others = [one for one in constant(System(), 40) if not one["series"].startswith(f"{changes[0][0]}{{")]
    expected: dict[str, set[str]] = {"19m": set(), "21m": {"FoldlakeDeadLetters"}, "40m": set()}

    run_rules(tmp_path, [RuleTest(at, [*others, *steps], at, alerts) for at, alerts in expected.items()])


@needs_promtool
def test_a_read_model_that_is_never_checked_fires_after_a_day(tmp_path: Path) -> None:
    always = constant(System(checks=(), verified=()), 27 * 15)
    expected: dict[str, set[str]] = {"25h": set(), "27h": {"FoldlakeNeverChecked"}}

    tests = [RuleTest(at, always, at, alerts) for at, alerts in expected.items()]
    run_rules(tmp_path, tests, interval="4m")
