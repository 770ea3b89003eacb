"""The tutorial shows the tables of `status` and `versions` as the commands print them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.table import Table

from cli.display.status_tables import check_table, stream_table, verified_table
from cli.versions import versions_table
from include.position import Offsets
from include.quality.newest_checks import NewestCheck
from include.quality.verified_stores import VerifiedStatus
from include.settings import CHECKOUT
from include.status.flow_status import FlowKind, FlowStatus, SourceStatus, StreamStatus
from include.stream.query_reports import QueryReport
from include.versions.transitions import hand_over, promote, register
from include.versions.version_record import ReadModelVersions, Stage, Version

TUTORIAL = (CHECKOUT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BUILT = datetime(2026, 11, 21, 9, 18, tzinfo=UTC)
PROMOTED = datetime(2026, 11, 21, 9, 27, tzinfo=UTC)
QUERY = QueryReport("balance/v1", "real time", 0, "", 15_729, "local[28]", 0.5, task_slots=8)
FOLD = FlowStatus(
    query=QUERY.query,
    kind=FlowKind.FOLD,
    name="balance",
    version=1,
    stage="live",
    events=155_371,
    events_behind=0,
    newest_event_age_s=11.0,
    report=QUERY,
)
LETTERS = FlowStatus(
    query="balance.dead-letter",
    kind=FlowKind.DEAD_LETTERS,
    name="balance",
    records=0,
    report=replace(QUERY, query="balance.dead-letter", task_slots=4),
)
STREAM = StreamStatus((FOLD, LETTERS), (SourceStatus("balance", 0),))


def printed(table: Table) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def test_the_stream_is_shown_as_status_prints_it() -> None:
    assert printed(stream_table(STREAM, {"standby pid": 15_933})) in TUTORIAL


def test_the_verified_stores_are_shown_as_status_prints_them() -> None:
    table = verified_table(
        [VerifiedStatus("balance", 1, store, Offsets(), 1, 11.0, 480.0) for store in ("lake", "nodes")]
    )

    assert printed(table) in TUTORIAL


def test_the_last_check_is_shown_as_status_prints_it() -> None:
    ended = PROMOTED - timedelta(seconds=11)
    check = NewestCheck(
        "balance",
        1,
        "incremental",
        ("lake",),
        passed=True,
        verdict="",
        ended_at=ended,
        duration_s=1.0,
        report="",
        engine="duckdb",
    )

    assert printed(check_table([check], PROMOTED)) in TUTORIAL


def test_the_versions_are_shown_as_the_command_prints_them() -> None:
    first = Version(1, Stage.LIVE, 1, "balance.v1.changelog", "first start", "2026-11-21T09:10:40+00:00")
    record = ReadModelVersions("balance", 1, (first,), "2026-11-21T09:10:40+00:00")
    reason = "1 % bonus on all funds added"
    record = register(record, run_id="run", reason=reason, fold_revision=2, now=BUILT)
    record = promote(hand_over(record, 2), 2, now=PROMOTED, retire_live_after=PROMOTED.replace(day=22))

    assert printed(versions_table([record])) in TUTORIAL
