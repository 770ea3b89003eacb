"""A new version of two routes is built beside the old one, and both read models behind them are promoted together, then rolled back."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from deltalake import DeltaTable

from include.lake.tables import table_path
from include.read_models.balance.events import FundsAdded
from include.rebuild.comparison import report
from include.rebuild.plan import rebuild_plan
from include.rebuild.stage import Action, Approval, Engine, PlanStage, SparkJob
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from include.versions.registry import VersionRegistry, change_live
from include.versions.transitions import roll_back
from stack.lifecycle import start
from tests.support.lake.stage_processes import StageProcesses
from tests.support.rebuild.stage_runs import stage_run
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import SHORT_COMMITS, sharing_servers
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(1800)]

SUPPORT = Path(__file__).parents[1] / "support"
DECLARATIONS, NEW_VERSIONS = SUPPORT / "read_models_with_routes", SUPPORT / "new_route_versions"
TOPIC, NEW_TOPIC = "postings", "postings.v2"
MODELS = ("accounts", "largest-postings")
EVENTS = 3_000
START = datetime(2026, 1, 1, tzinfo=UTC)
BANK = "bank"
TIMEOUT_S = 400.0
# Which deposits count: at least one whole unit for version 1 of the route, at least ten for version 2.
SMALLEST = {1: Decimal(1), 2: Decimal(10)}
Totals = dict[str, dict[str, Any]]


@dataclass
class Ledger:
    """What was appended to the sources, and what each version of the routes makes of it."""

    settings: Settings
    events: list[FundsAdded] = field(default_factory=list)
    payments: list[Decimal] = field(default_factory=list)

    def append(self) -> None:
        """Append deposits and payments."""
        first = len(self.events)
        events = [self._event(number) for number in range(first, first + EVENTS)]
        EventSource(self.settings, "balance").append(events)
        self.events += events
        log = EventSource(self.settings, "terminal-log")
        payments = [Decimal(number) / 4 for number in range(1, 101)]
        for amount in payments:
            log.append_raw(b"terminal", _payment(f"payment-{len(self.payments)}", amount))
        log.flush()
        self.payments += payments

    def expected(self, version: int) -> dict[str, Totals]:
        """Return the state of each key of each read model."""
        amounts: dict[str, list[Decimal]] = {BANK: []}
        for event in self.events:
            if event.amount >= SMALLEST[version]:
                amounts[BANK].append(event.amount)
                amounts.setdefault(f"{event.occurredOn:%Y-%m-%d}", []).append(event.amount)
        # Version 2 of the route of payments doubles them.
        amounts[BANK] += [amount * version for amount in self.payments]
        totals = {key: {"postings": len(found), "total": sum(found)} for key, found in amounts.items()}
        return {"accounts": totals, "largest-postings": {k: {"largest": max(v)} for k, v in amounts.items()}}

    @staticmethod
    def _event(number: int) -> FundsAdded:
        return FundsAdded(
            customerId=f"customer-{number % 211}",
            amount=(Decimal(number % 100 + 1) / 4).quantize(Decimal("0.01")),
            id=str(number),
            occurredOn=START + timedelta(hours=number % 240),
        )


def _payment(identity: str, amount: Decimal) -> bytes:
    logged = {
        "@timestamp": f"{START:%Y-%m-%dT%H:%M:%SZ}",
        "logger_name": "payments",
        "thread_name": "terminal",
    }
    return json.dumps(logged | {"id": identity, "account": BANK, "amount": str(amount)}).encode()


@pytest.fixture(scope="module")
def declarations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 1 of the routes, and two read models behind them."""
    folder = tmp_path_factory.mktemp("declarations") / "declared"
    shutil.copytree(DECLARATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(NEW_VERSIONS / "largest_postings.py", folder)
    return folder


@pytest.fixture(scope="module")
def home(servers: Settings, keep_home: Callable[[], bool], declarations: Path) -> Iterator[Settings]:
    overrides = {**SHORT_COMMITS, "stream_spare_queries": 2, "quality_wait_s": 20.0}
    with sharing_servers(servers, keep_home, **overrides, read_models_dir=declarations) as settings:
        for topic in ("balance", "terminal-log"):
            make_topics(settings, topic)
        start(settings, ["query_nodes"])
        yield settings


@pytest.fixture(scope="module")
def versions_driver(home: Settings) -> Iterator[SharedDriver]:
    with SharedDriver(home) as shared:
        yield shared


def answers(settings: Settings, port: int, version: int | None) -> dict[str, Totals] | None:
    """Return every record of each read model from a node, by default of the live version; None while one is not ready."""
    of_version = {} if version is None else {"version": version}
    found: dict[str, Totals] = {}
    for model in MODELS:
        found[model] = {}
        for partition in range(settings.topics.partitions):
            url = f"http://127.0.0.1:{port}/api/read-models/{model}/records"
            answer = httpx.get(
                url, params={"partition": partition, **of_version}, trust_env=False, follow_redirects=True
            )
            if answer.status_code != httpx.codes.OK:
                return None
            for record in answer.json(parse_float=Decimal)["records"]:
                found[model][record["key"]] = record["state"]
    return found


def are_answered(settings: Settings, expected: Mapping[str, Totals], version: int | None = None) -> bool:
    """Whether both nodes answer exactly these states, by default with the live version."""
    for port in settings.query_ports:
        found = answers(settings, port, version)
        if found is None:
            return False
        if found != expected:
            return False
    return True


@dataclass
class PlanRun:
    """Runs the stages of a topic's rebuild, as Airflow does, without Airflow."""

    settings: Settings
    processes: StageProcesses
    results: dict[str, Any] = field(default_factory=dict)

    def run(self, stage: PlanStage) -> None:
        """Run one stage; fails if it does."""
        form = {"reason": "only large deposits", "approve": False, "grace_hours": 1.0}
        run = stage_run(self.settings, stage.read_models, form, run_id="a-run", results=self.results)
        match stage.work:
            case Action() as action:
                self.results[stage.name] = action.run(run)
            case SparkJob() as job:
                of = self.processes.stream_job if job.engine is Engine.STREAM else self.processes.lake_job
                assert of(job.job, *job.arguments(run)).wait(TIMEOUT_S) == 0, stage.name
            case Approval() as approval:
                assert approval.question(run).subject.startswith(
                    "Promote v2 of accounts, v2 of largest-postings"
                )
            case _:
                raise AssertionError(stage.name)


def test_a_new_version_of_the_routes_is_promoted_with_what_is_folded_behind_it(
    home: Settings, versions_driver: SharedDriver, declarations: Path
) -> None:
    ledger = Ledger(home)
    ledger.append()
    versions_driver.ensure_running()
    wait_until(lambda: are_answered(home, ledger.expected(1)), "version 1 is exact", TIMEOUT_S)

    for module in NEW_VERSIONS.glob("*_2.py"):
        shutil.copy(module, declarations)
    versions_driver.kill()
    versions_driver.ensure_running()
    with (home.home / "logs" / "stages.log").open("ab") as log:
        stages = PlanRun(home, StageProcesses(home, "", log))
        plan = rebuild_plan(MODELS, TOPIC)
        for stage in plan.stages:
            if stage.name == "promote":
                ledger.append()
                wait_until(lambda: are_answered(home, ledger.expected(1)), "version 1 is live", TIMEOUT_S)
            stages.run(stage)
            if stage.name == "promote":
                # The gate has waited for the events that came before.
                assert are_answered(home, ledger.expected(2), version=2)
                # A node answers from the new live version some 0.6 s after the record that makes it live.
                wait_until(lambda: are_answered(home, ledger.expected(2)), "version 2 is live", TIMEOUT_S)
            if stage.name == "accounts.compare":
                require_compared(home, ledger)
            if stage.name == "read_sources":
                versions_driver.kill()
                versions_driver.ensure_running()
    require_rows(home, ledger.expected(2))
    status = {route.name: route for route in read_stream_status(home).of_kind(FlowKind.ROUTE)}
    assert status["postings.v2"].output_topic == status["payments.v2"].output_topic == NEW_TOPIC

    ledger.append()
    wait_until(lambda: are_answered(home, ledger.expected(2)), "version 2 goes on", TIMEOUT_S)
    now = datetime.now(UTC)
    back = partial(roll_back, number=1, now=now, retire_live_after=now + timedelta(hours=1))
    with VersionRegistry(home.kafka_connection) as registry:
        for model in MODELS:
            change_live(registry, model, back)
    wait_until(lambda: are_answered(home, ledger.expected(1)), "version 1 is live again", TIMEOUT_S)


def require_compared(settings: Settings, ledger: Ledger) -> None:
    """Fail unless the comparison says exactly what version 2 of the routes changes in the accounts."""
    found = report.read(settings.home, "rebuild-accounts-v2")
    assert found is not None
    assert found.before is not None
    old, new = (ledger.expected(version)["accounts"] for version in (1, 2))
    assert (found.before.keys, found.after.keys) == (len(old), len(new))
    total = found.fields["total"]
    assert Decimal(total.before or "") == sum(state["total"] for state in old.values())
    assert Decimal(total.after or "") == sum(state["total"] for state in new.values())
    assert found.changed == sum(state != old[key] for key, state in new.items())
    assert f"different topics, {TOPIC} and {NEW_TOPIC}" in found.notes[0]


def require_rows(settings: Settings, expected: Mapping[str, Totals]) -> None:
    """Fail unless the lake has exactly these states."""
    for model, states in expected.items():
        rows = DeltaTable(table_path(settings.lake_root, model)).to_pyarrow_table().to_pylist()
        found = {row["key"]: {name: row[name] for name in states[row["key"]]} for row in rows}
        assert found == states, model
