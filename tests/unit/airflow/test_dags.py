"""Every DAG loads quickly, has documentation and an owner, and those with a plan have its stages as tasks in its order."""

import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from include.airflow.names import POOLS
from include.rebuild.plan import REBUILD, ROLLBACK, Plan, failure_table, rebuild_plan
from include.rebuild.request import PROMOTION_FIELDS, RollbackRequest
from include.settings import CHECKOUT, Settings
from stack.components import airflow
from tests.support.airflow.dag_loading import Loaded

SUPPORT = Path(__file__).parents[2] / "support"


def test_no_dag_fails_to_load(loaded: dict[str, Any]) -> None:
    assert loaded["errors"] == {}


def test_every_dag_can_be_stored_for_the_scheduler(loaded: dict[str, Any]) -> None:
    """What a DAG takes from a plugin must be registered there."""
    assert set(loaded["serialized"]) == set(loaded["dags"])


def test_every_file_defines_its_dag(loaded: dict[str, Any]) -> None:
    files = {file.stem for file in CHECKOUT.joinpath("dags").glob("*.py")}

    # Without new versions of a topic, `rebuild_topic` defines none. `declarations` is there for its import error.
    assert set(loaded["dags"]) == files - {"rebuild_topic", "declarations"}


def test_a_topic_with_a_new_version_has_a_dag_with_the_stages_of_its_plan(
    tmp_path: Path, load: Callable[[dict[str, str]], Loaded]
) -> None:
    declarations = tmp_path / "read_models"
    shutil.copytree(SUPPORT / "read_models_with_routes", declarations)
    shutil.copytree(SUPPORT / "new_route_versions", declarations, dirs_exist_ok=True)
    environment = airflow.environment(Settings.of(home=tmp_path))

    found = load(environment | {"FOLDLAKE_READ_MODELS_DIR": str(declarations)})

    assert found["errors"] == {}
    dag = found["dags"]["rebuild_topic.postings"]
    assert dag["form"] == ["reason", *PROMOTION_FIELDS]
    plan = rebuild_plan(("accounts", "largest-postings"), "postings")
    assert set(dag["tasks"]) == {stage.name for stage in plan.all_stages}
    assert failure_table(plan) in dag["doc"]
    assert dag["tasks"]["promote"]["upstream"] == ["approve"]


def test_every_dag_has_documentation_and_an_owner(loaded: dict[str, Any]) -> None:
    for dag_id, dag in loaded["dags"].items():
        assert len(dag["doc"]) > 100, dag_id
        assert dag["description"], dag_id
        assert "foldlake" in dag["tags"], dag_id
        assert dag["owner"] == "foldlake", dag_id


def test_every_dag_starts_at_a_fixed_date_and_runs_once_at_a_time(loaded: dict[str, Any]) -> None:
    for dag_id, dag in loaded["dags"].items():
        assert dag["start"] == "2024-01-01 00:00:00+00:00", dag_id
        # The version registry refuses a second rebuild with a reason; it must not wait in Airflow's queue.
        # A compaction that somebody waits for must not wait for a scheduled one.
        assert dag["active_runs"] == (16 if dag_id in {"rebuild", "compaction"} else 1), dag_id


def test_dag_files_are_light(loaded: dict[str, Any]) -> None:
    assert loaded["heavy"] == []
    # The first file pays for Airflow's own imports, on a busy machine too.
    assert max(loaded["seconds"]) < 20


PLANS = pytest.mark.parametrize("plan", [REBUILD, ROLLBACK], ids=lambda plan: plan.name)


@PLANS
def test_the_tasks_of_a_plan_s_dag_are_its_stages_in_its_order(loaded: dict[str, Any], plan: Plan) -> None:
    tasks = loaded["dags"][plan.name]["tasks"]
    expected: dict[str, list[str]] = {}
    before: list[str] = []
    for step in plan.steps:
        expected |= {stage.name: before for stage in step}
        before = sorted(stage.name for stage in step)
    if plan.clean_up is not None:
        expected[plan.clean_up.name] = sorted(stage.name for stage in plan.before_clean_up)

    assert {name: task["upstream"] for name, task in tasks.items()} == expected


@PLANS
def test_the_tasks_of_a_plan_s_dag_have_its_retries_timeouts_and_descriptions(
    loaded: dict[str, Any], plan: Plan
) -> None:
    tasks = loaded["dags"][plan.name]["tasks"]
    for stage in plan.all_stages:
        task = tasks[stage.name]
        assert task["retries"] == stage.retries, stage.name
        assert task["timeout_s"] == (stage.timeout.total_seconds() if stage.timeout else None), stage.name
        assert task["priority"] == stage.priority, stage.name
        assert task["pool"] == (stage.slot.value if stage.slot else "default_pool"), stage.name
        assert task["rule"] == ("all_done" if stage is plan.clean_up else "all_success"), stage.name
        assert stage.on_failure in task["doc"], stage.name
    assert failure_table(plan) in loaded["dags"][plan.name]["doc"]


def test_the_form_of_a_rollback_has_every_field_of_its_request(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["rollback"]["form"] == [field.name for field in fields(RollbackRequest)]


def test_a_field_that_is_empty_at_first_may_stay_empty(loaded: dict[str, Any]) -> None:
    """Airflow's page has no other way to say so than the type null: it does not trigger a run with an empty string."""
    fields_of = {dag: one["empty"] for dag, one in loaded["dags"].items()}
    assert set(fields_of["rebuild"]) == {
        "fold_revision",
        "start",
        "max_changed_percent",
        "max_total_change",
    }
    for dag, empty in fields_of.items():
        for name, kind in empty.items():
            assert "null" in kind, f"{dag}: {name}"


def test_the_stages_of_a_rebuild_are_in_boxes_and_keep_their_names(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["rebuild"]["groups"] == {
        "build": ["build_staging", "catch_up", "compare", "verify"],
        "serve": ["hand_over", "hydrate"],
        "promotion": ["approve", "promote", "promote_lake"],
    }


def test_the_navigation_has_the_status_page(loaded: dict[str, Any]) -> None:
    (view,) = loaded["views"]
    assert (view["destination"], view["href"]) == ("nav", "http://127.0.0.1:5051/")


def test_a_change_of_the_lake_emits_an_asset_event(loaded: dict[str, Any]) -> None:
    for plan in (REBUILD, ROLLBACK):
        assert loaded["dags"][plan.name]["tasks"]["promote_lake"]["outlets"] == ["lake"]


def test_every_spark_task_has_an_application_that_exists(loaded: dict[str, Any]) -> None:
    applications = {
        f"{dag_id}.{task_id}": task["application"]
        for dag_id, dag in loaded["dags"].items()
        for task_id, task in dag["tasks"].items()
        if task["application"] is not None
    }

    assert len(applications) > len(REBUILD.stages) // 3
    assert [name for name, path in applications.items() if not Path(path).is_file()] == []


def test_jobs_that_share_a_pool_start_in_the_order_of_who_waits_for_them(loaded: dict[str, Any]) -> None:
    tasks = [
        task for dag in loaded["dags"].values() for task in dag["tasks"].values() if task["pool"] in POOLS
    ]

    assert {task["weight_rule"] for task in tasks} == {"RequestedFirst"}


def test_the_stream_task_is_retried_when_its_driver_ends(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["stream"]["tasks"]["driver"]["retries"] > 0


def test_a_broken_read_model_is_an_import_error_of_its_own(
    tmp_path: Path, loaded: dict[str, Any], load: Callable[[dict[str, str]], Loaded]
) -> None:
    environment = airflow.environment(Settings.of(home=tmp_path))
    models = tmp_path / "read_models"
    models.mkdir()
    (models / "broken.py").write_text("# A comment.\nREAD_MODEL = undefined_name\n")

    found = load(environment | {"FOLDLAKE_READ_MODELS_DIR": str(models)})

    assert set(found["dags"]) == set(loaded["dags"])
    assert set(found["dags"]["compaction"]["tasks"]) == set(loaded["dags"]["compaction"]["tasks"])
    (error,) = found["errors"].values()
    assert f"broken is left out: {models}/broken.py:2: NameError: name 'undefined_name'" in error


def test_each_task_of_the_maintenance_is_independent_and_retried(loaded: dict[str, Any]) -> None:
    tasks = loaded["dags"]["maintenance"]["tasks"]

    assert sorted(tasks) == ["airflow_database", "airflow_logs", "reports", "version_registry"]
    for name, task in tasks.items():
        assert (task["upstream"], task["retries"]) == ([], 3), name
        assert task["timeout_s"] == 3600, name


def test_a_rebuild_is_verified_by_a_task_that_does_not_retry_a_failed_check(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["rebuild"]["tasks"]["verify"]["operator"] == "VerifyVersion"


def test_a_rebuild_is_compared_by_a_task_that_links_its_report(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["rebuild"]["tasks"]["compare"]["operator"] == "CompareVersions"
    assert loaded["dags"]["rebuild"]["form"][4:] == list(PROMOTION_FIELDS)
