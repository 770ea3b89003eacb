"""Tables fit a terminal of 80 columns: versions with the reason of a rollback, checks, the newest first, and a version being built in status."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from cli.display.status_tables import check_table, stream_table
from cli.quality import runs_table
from cli.versions import versions_table
from include.quality.history import PastRun
from include.quality.newest_checks import NewestCheck
from include.status.flow_status import BuildingVersion, FlowKind, FlowStatus, StreamStatus
from include.versions.transitions import hand_over, promote, register, roll_back
from include.versions.version_record import ReadModelVersions, first_version

NOW = datetime(2026, 11, 26, 12, 30, tzinfo=UTC)
LATER = NOW + timedelta(days=1)
LONG_REASON = "the bonus was also given for withdrawals, which nobody had asked for in the first place"


def rolled_back() -> ReadModelVersions:
    record = first_version("order-location-of-couriers", 1)
    record = register(record, run_id="run", reason="a bonus for large deposits", fold_revision=2, now=NOW)
    record = promote(hand_over(record, 2), 2, now=NOW, retire_live_after=LATER)
    return roll_back(record, 1, now=NOW, retire_live_after=LATER, reason=LONG_REASON)


def lines_at_80_columns(table: object) -> list[str]:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(table)
    return capture.get().splitlines()


def test_the_reason_of_a_rollback_is_shown_within_80_columns() -> None:
    lines = lines_at_80_columns(versions_table([rolled_back()]))

    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    # Not cut, and not broken.
    assert "2026-11-26 12:30" in text
    assert "…" not in text
    reasons = " ".join(line[58:].strip() for line in lines)
    for word in LONG_REASON.split():
        assert word in text, reasons
    assert "kept until" in text


def test_checks_are_listed_newest_first_within_80_columns() -> None:
    def past(day: int, *failed: str) -> PastRun:
        name = f"manual__2026-11-{day}T10:08:47.213471+00:00-balance"
        when = NOW.replace(day=day)
        return PastRun(name, when, "balance", 1, "incremental", ("lake", "nodes"), failed)

    lines = lines_at_80_columns(runs_table([past(20), past(21, "lake: no key is missing (1)")]))

    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert text.index("2026-11-21 12:30") < text.index("2026-11-20 12:30")
    assert "FAILED" in text


def test_status_shows_why_spark_has_checked() -> None:
    check = NewestCheck(
        read_model="balance",
        version=None,
        mode="full",
        stores=(),
        passed=False,
        verdict="",
        ended_at=NOW,
        duration_s=1.0,
        report="",
        engine="spark",
        engine_reason="DuckDB found 1 failing key [a]",
    )

    text = " ".join(lines_at_80_columns(check_table([check], NOW + timedelta(minutes=3))))

    assert "FAILED 3 min ago, full, with Spark, because DuckDB found 1 failing key [a]" in " ".join(
        text.split()
    )


def test_status_shows_a_version_being_built() -> None:
    created = (datetime.now(UTC) - timedelta(minutes=12)).isoformat()
    status = StreamStatus(building=(BuildingVersion("balance", 3, 2, created, "a bonus"),))

    lines = lines_at_80_columns(stream_table(status, {"standby pid": None}))

    assert "balance v3        building for 12 min, fold 2: a bonus" in " ".join(lines)


@pytest.mark.parametrize(
    ("kind", "changed", "line"),
    [
        (FlowKind.EMISSION, {"version": 2}, "emission totals v2 5 records on out, 3 behind, not running"),
        (FlowKind.ROUTE, {}, "route totals 5 records on out, 3 behind, not running"),
        ("distinct", {}, "distinct totals 5 records on out, 3 behind, not running"),
        (
            FlowKind.PERIODIC,
            {"version": 2, "has_query": False, "emit_every_s": 10.0, "newest_output_age_s": 4.0},
            "periodic emission totals every 10 s to out, newest tick 4 s ago",
        ),
        (FlowKind.DEAD_LETTERS, {"events_behind": None}, "dead letters of totals 5, not running"),
        (FlowKind.OTHER, {"output_topic": "", "events_behind": None}, "query totals , not running"),
    ],
)
def test_status_names_each_flow_by_its_kind(kind: str, changed: dict[str, Any], line: str) -> None:
    flow = FlowStatus("query", kind, "totals", output_topic="out", events_behind=3, records=5)

    lines = lines_at_80_columns(stream_table(StreamStatus((replace(flow, **changed),)), {}))

    assert " ".join(lines[-1].split()) == line
