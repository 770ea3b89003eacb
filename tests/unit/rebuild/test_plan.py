"""The plans as data: the stages of a request, their order, their jobs' arguments, and their descriptions."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from include.airflow.names import POOLS
from include.rebuild.comparison.thresholds import Thresholds
from include.rebuild.errors import NothingToDoError
from include.rebuild.plan import (
    REBUILD,
    ROLLBACK,
    Plan,
    PlannedStage,
    failure_table,
    planned_stages,
    rollback_plan,
    stage_table,
)
from include.rebuild.request import RebuildRequest
from include.rebuild.stage import Action, SparkJob
from include.settings import CHECKOUT, Settings
from include.versions.transitions import abandon, register
from include.versions.version_record import first_version
from tests.support.rebuild.stage_runs import RegisteredRun, stage_run

REQUEST = RebuildRequest({"balance": 2}, "1 % bonus", approve=True, grace_h=24.0)
RECORDS = {"balance": first_version("balance", 1)}
EVERY_STAGE = [
    ("register_candidate", 2),
    ("catch_up", 2),
    ("build_staging", 2),
    ("verify", 2),
    ("compare", 2),
    ("hand_over", 2),
    ("hydrate", 2),
    ("approve", 2),
    ("promote", 2),
    ("promote_lake", 2),
]


def as_data(planned: tuple[PlannedStage, ...]) -> list[tuple[str, int | None]]:
    return [(one.stage.name, one.version) for one in planned]


def planned(request: RebuildRequest = REQUEST) -> list[tuple[str, int | None]]:
    return as_data(planned_stages(REBUILD, request, RECORDS))


def test_rebuild_has_every_stage() -> None:
    assert planned() == EVERY_STAGE


def test_rebuild_without_approval_lacks_only_that_stage() -> None:
    assert planned(replace(REQUEST, approve=False)) == [
        stage for stage in EVERY_STAGE if stage != ("approve", 2)
    ]


def test_rebuild_with_thresholds_may_ask_for_approval() -> None:
    request = replace(REQUEST, approve=False, thresholds=Thresholds(no_negative=True))
    assert planned(request) == EVERY_STAGE


def test_dry_run_ends_with_the_comparison_and_abandons_the_version() -> None:
    assert planned(replace(REQUEST, dry_run=True)) == [*EVERY_STAGE[:5], ("abandon", 2)]


def test_dry_run_hands_nothing_over() -> None:
    work = next(stage.work for stage in REBUILD.stages if stage.name == "hand_over")
    assert isinstance(work, Action)
    with pytest.raises(NothingToDoError, match="dry run"):
        work.run(stage_run(Settings.of(), ("balance",), {"dry_run": True}))


def test_next_rebuild_does_not_reuse_the_number_of_an_abandoned_version() -> None:
    registered = register(
        RECORDS["balance"], run_id="run-a", reason="", fold_revision=1, now=datetime.now(UTC)
    )
    records = {"balance": abandon(registered, 2)}
    assert as_data(planned_stages(REBUILD, REQUEST, records)) == [(name, 3) for name, _ in EVERY_STAGE]


@pytest.mark.parametrize(
    ("stage", "arguments"),
    [
        ("catch_up", ["--read-model", "balance", "--version", "7"]),
        ("build_staging", ["--read-model", "balance", "--version", "7"]),
        (
            "verify",
            [
                *("--read-model", "balance", "--version", "7", "--mode", "full"),
                *("--stores", "changelog,staging", "--run-id", "rebuild-balance-v7"),
            ],
        ),
        (
            "compare",
            ["--read-model", "balance", "--version", "7", "--run-id", "rebuild-balance-v7"],
        ),
        ("promote_lake", ["--read-model", "balance"]),
    ],
)
def test_job_gets_the_version_that_the_run_has_registered(stage: str, arguments: list[str]) -> None:
    run = RegisteredRun(Settings.of(), "run-a", ("balance",), {}, {}, datetime.now(UTC), print, print)
    work = next(one.work for one in REBUILD.stages if one.name == stage)
    assert isinstance(work, SparkJob)
    assert list(work.arguments(run)) == arguments


def test_rollback() -> None:
    assert as_data(rollback_plan(1)) == [("choose_version", 1), ("roll_back", 1), ("promote_lake", 1)]


def test_only_catch_up_and_staging_may_run_concurrently() -> None:
    together = [[stage.name for stage in step] for step in REBUILD.steps if len(step) > 1]
    assert together == [["catch_up", "build_staging"]]


def test_clean_up_follows_the_stages_up_to_the_promotion() -> None:
    assert REBUILD.clean_up is not None
    assert REBUILD.clean_up.name == "abandon"
    assert [stage.name for stage in REBUILD.before_clean_up] == [name for name, _ in EVERY_STAGE[:9]]


@pytest.mark.parametrize("plan", [REBUILD, ROLLBACK], ids=lambda plan: plan.name)
def test_every_stage_is_complete(plan: Plan) -> None:
    for stage in plan.all_stages:
        for text in (stage.description, stage.on_failure, stage.leaves, stage.next_try):
            assert text, stage.name
            assert not text.endswith("."), stage.name
            assert "|" not in text, f"{stage.name}: it would end a table's cell"
        if isinstance(stage.work, SparkJob):
            assert (CHECKOUT / "spark_jobs" / f"{stage.work.job}.py").is_file(), stage.name
        assert stage.slot is None or stage.slot.value in POOLS


def test_plan_is_importable_without_airflow_spark_and_flask() -> None:
    code = (
        "import sys, include.rebuild.plan\n"
        "print(sorted({'airflow', 'pyspark', 'flask', 'deltalake', 'pyarrow', 'query_api'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("table", [failure_table, stage_table])
def test_tables_have_a_row_for_each_stage(table: Callable[[Plan], str]) -> None:
    lines = table(REBUILD).splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        f"`{stage.name}`" for stage in REBUILD.all_stages
    ]
    assert {line.count("|") for line in lines} == {lines[0].count("|")}


@pytest.mark.parametrize("plan", [REBUILD, ROLLBACK], ids=lambda plan: plan.name)
def test_documentation_contains_the_tables_of_the_plan(plan: Plan) -> None:
    page = (CHECKOUT / "docs" / "reference" / "dags.md").read_text(encoding="utf-8")
    assert stage_table(plan) in page
