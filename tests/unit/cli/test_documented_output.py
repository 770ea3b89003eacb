"""The tutorial shows the tables of `status` and `versions` as the commands print them."""

from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from cli.display.status_tables import duration, stream_table
from cli.display.verified_display import verified_table
from cli.versions import versions_table
from include.settings import CHECKOUT
from include.versions.transitions import hand_over, promote, register
from include.versions.version_record import ReadModelVersions, Stage, Version

TUTORIAL = (CHECKOUT / "docs" / "tutorial.md").read_text(encoding="utf-8")
BUILT = datetime(2026, 11, 21, 9, 18, tzinfo=UTC)
PROMOTED = datetime(2026, 11, 21, 9, 27, tzinfo=UTC)
QUERY = {"phase": "real time", "restarts": 0, "last_error": ""}
VERSION = {"read_model": "balance", "version": 1, "stage": "live", "latency": "milliseconds", "still_s": None}
STREAM = {
    "state": "running",
    "driver_pid": 15729,
    "events_behind": 0,
    "newest_event_age_s": 11.0,
    "dead_letters": 0,
    "versions": ({**VERSION, "events": 155_371, "events_behind": 0},),
    "queries": (
        {**QUERY, "query": "balance/v1", "task_slots": 8},
        {**QUERY, "query": "balance.dead-letter", "task_slots": 4},
    ),
    "placements": [],
    "standby_pid": 15933,
}


def printed(table: Table) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def test_the_stream_is_shown_as_status_prints_it() -> None:
    assert printed(stream_table(STREAM)) in TUTORIAL


def test_the_verified_stores_are_shown_as_status_prints_them() -> None:
    verified = {"read_model": "balance", "version": 1, "events_behind": 1, "age_s": 11.0, "full_age_s": 480.0}

    table = verified_table([{**verified, "store": store} for store in ("lake", "nodes")], duration)

    assert printed(table) in TUTORIAL


def test_the_versions_are_shown_as_the_command_prints_them() -> None:
    first = Version(1, Stage.LIVE, 1, "balance.v1.changelog", "first start", "2026-11-21T09:10:40+00:00")
    record = ReadModelVersions("balance", 1, (first,), "2026-11-21T09:10:40+00:00")
    reason = "1 % bonus on all funds added"
    record = register(record, run_id="run", reason=reason, fold_revision=2, now=BUILT)
    record = promote(hand_over(record, 2), 2, now=PROMOTED, retire_live_after=PROMOTED.replace(day=22))

    assert printed(versions_table([record])) in TUTORIAL
