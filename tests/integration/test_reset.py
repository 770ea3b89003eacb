"""A reset: the new version holds exactly the events from its start on, and the check, whole and incremental, agrees."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.declarations.load import load_catalog
from include.lake.tables import staging_path
from include.quality.report import summary_path
from include.read_models.balance.events import FundsAdded
from include.rebuild.comparison import report
from include.rebuild.comparison.comparison import Comparison
from include.settings import Settings
from include.versions.registry import VersionRegistry, change
from include.versions.version_record import ReadModelVersions, first_version
from tests.support.lake.stage_processes import StageProcesses
from tests.support.stream_process import EventSource, make_topics, records_of, states
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

MODEL = load_catalog().models["balance"]
CHANGELOG = "balance.v2.changelog"
STAGE_TIMEOUT_S = 240.0
Balances = dict[str, tuple[int, Decimal]]


@pytest.fixture
def home(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """A home with a live version 1 of `balance`, which no driver folds."""
    with sharing_servers(servers, keep_home, lake_shuffle_partitions=2, stream_spare_queries=1) as settings:
        make_topics(settings, MODEL.source_topic)
        with VersionRegistry(settings.kafka_connection) as registry:
            registry.ensure_topic()
            registry.compare_and_set(first_version(MODEL.name, 1), 0)
        yield settings


def events(customers: range, cents: int) -> list[FundsAdded]:
    return [FundsAdded(customerId=f"customer-{n}", amount=Decimal(cents + n) / 100) for n in customers]


def balances(of: list[FundsAdded]) -> Balances:
    counts = Counter(event.customerId for event in of)
    sums = {key: sum((e.amount for e in of if e.customerId == key), Decimal(0)) for key in counts}
    return {key: (counts[key], sums[key]) for key in counts}


def folded(settings: Settings) -> Balances:
    found = states(settings, MODEL, CHANGELOG, 1)
    return {key: (record.event_count, record.state["amount"]) for key, record in found.items()}


def run(process_of: Callable[..., object], *arguments: str) -> None:
    process = process_of(*arguments)
    assert process.wait(STAGE_TIMEOUT_S) == 0, f"{arguments}: see stages.log"  # type: ignore[attr-defined]


@pytest.mark.endurance
@pytest.mark.timeout(600)
def test_a_version_from_a_time_on_holds_exactly_the_later_events(home: Settings, tmp_path: Path) -> None:
    source = EventSource(home, MODEL.source_topic)
    # Only the first 20 customers have events before the start, so that keys are gone, changed, added and unchanged.
    source.append(events(range(20), 1_000))
    before_ms = max(message.timestamp()[1] for message in records_of(home, MODEL.source_topic))
    wait_until(
        lambda: time.time() * 1000 > before_ms + 1, "the clock is after the first events", timeout_s=10
    )
    start = datetime.fromtimestamp((before_ms + 1) / 1000, UTC).isoformat()
    later = [*events(range(10, 30), 500), *events(range(10, 12), 70)]
    source.append(later)

    log_path = home.home / "logs" / "stages.log"
    log_path.parent.mkdir(exist_ok=True)
    with log_path.open("ab") as log:
        stages = StageProcesses(home, MODEL.name, log)
        result = tmp_path / "preview.json"
        run(stages.lake_job, "reset_preview", "--start", start, "--result", str(result))
        preview = Comparison.from_json(result.read_text())
        assert preview.before is not None
        assert (preview.before.events, preview.after.events) == (20 + len(later), len(later))
        assert (preview.before.keys, preview.after.keys) == (30, 20)
        assert (preview.changed, preview.added, preview.gone) == (10, 0, 10)
        assert Decimal(preview.fields["amount"].after or "") == sum(event.amount for event in later)

        version = ("--version", "2")
        run(
            stages.action, "register_candidate", "--run-id", "reset", "--start", start, "--fold-revision", "1"
        )
        run(stages.stream_job, "catch_up", *version)
        run(stages.lake_job, "build_staging", *version)
        assert folded(home) == balances(later)
        table = DeltaTable(staging_path(home.lake_root, MODEL.name, 2)).to_pyarrow_table()
        assert {r["key"]: (r["event_count"], r["amount"]) for r in table.to_pylist()} == balances(later)
        run(stages.lake_job, "compare_versions", *version, "--run-id", "reset")
        compared = report.read(home.home, "reset")
        assert compared is not None
        assert (compared.fields, compared.largest) == (preview.fields, preview.largest)
        assert (compared.changed, compared.added, compared.gone) == (10, 0, 10)
        assert compared.notes == ()
        check = (*version, "--stores", "changelog,staging")
        run(stages.lake_job, "quality_check", *check, "--mode", "full", "--run-id", "whole")

        # From its checkpoint, and what was verified.
        more = events(range(25, 35), 10)
        source.append(more)
        run(stages.stream_job, "catch_up", *version)
        assert folded(home) == balances([*later, *more])
        run(stages.lake_job, "build_staging", *version)
        run(stages.lake_job, "quality_check", *check, "--mode", "incremental", "--run-id", "more")
    verdict = json.loads(summary_path(home.home, "more").read_text())
    assert verdict["passed"]


@pytest.mark.endurance
@pytest.mark.timeout(600)
def test_a_version_from_the_end_of_the_log_on_is_empty_until_the_next_event(home: Settings) -> None:
    source = EventSource(home, MODEL.source_topic)
    source.append(events(range(20), 1_000))
    log_path = home.home / "logs" / "stages.log"
    log_path.parent.mkdir(exist_ok=True)
    with log_path.open("ab") as log:
        stages = StageProcesses(home, MODEL.name, log)
        version, start = ("--version", "2"), ("--start", "shift-by 1000")
        run(stages.action, "register_candidate", "--run-id", "reset", *start, "--fold-revision", "1")
        run(stages.stream_job, "catch_up", *version)
        run(stages.lake_job, "build_staging", *version)
        assert folded(home) == {}
        check = (*version, "--stores", "changelog,staging")
        run(stages.lake_job, "quality_check", *check, "--run-id", "empty")

        next_events = events(range(3), 10)
        source.append(next_events)
        run(stages.stream_job, "catch_up", *version)
        assert folded(home) == balances(next_events)

        # Planted: from here on, one event of each partition counts that the stores lack.
        start_one_earlier(home, 2)
        faulty = stages.lake_job("quality_check", *version, "--stores", "changelog", "--run-id", "faulty")
        assert faulty.wait(STAGE_TIMEOUT_S) == 1
    verdict = json.loads(summary_path(home.home, "faulty").read_text())
    assert not verdict["passed"]


def start_one_earlier(settings: Settings, number: int) -> None:
    """Change the start of a version in the registry, which no release does: its stores then have another one."""

    def moved(record: ReadModelVersions) -> ReadModelVersions:
        versions = tuple(
            replace(v, start_offsets=tuple(max(0, start - 1) for start in v.start_offsets))
            if v.number == number
            else v
            for v in record.versions
        )
        return replace(record, versions=versions)

    with VersionRegistry(settings.kafka_connection) as registry:
        change(registry, MODEL.name, moved)
