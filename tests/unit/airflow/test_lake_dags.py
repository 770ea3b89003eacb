"""The DAGs of the lake have a task for each table, and those of checks one for each store."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from include.settings import Settings
from stack.components import airflow
from tests.support.airflow.dag_loading import Loaded


def test_compaction_has_a_task_for_each_read_model_with_its_own_asset(loaded: dict[str, Any]) -> None:
    task = loaded["dags"]["compaction"]["tasks"]["compact_balance"]
    expected = {
        "operator": "SparkJobOperator",
        "retries": 3,
        "outlets": ["lake/balance"],
        "pool": "lake",
        "upstream": ["choose"],
    }
    assert {name: task[name] for name in expected} == expected


def test_a_check_is_offered_after_the_compaction_of_each_read_model(loaded: dict[str, Any]) -> None:
    task = loaded["dags"]["compaction"]["tasks"]["check_due_balance"]

    assert (task["operator"], task["upstream"]) == ("TriggerCheckIfDue", ["compact_balance"])
    assert task["outlets"] == ["check-due/balance"]


def test_an_event_table_has_a_task_that_appends_to_it_and_one_that_checks_it(
    tmp_path: Path, load: Callable[[dict[str, str]], Loaded]
) -> None:
    environment = airflow.environment(Settings.of(home=tmp_path, systems=("pos",)))

    found = load(environment)

    assert found["errors"] == {}
    task = found["dags"]["compaction"]["tasks"]["append_trend"]
    assert (task["outlets"], task["pool"], task["retries"]) == (["lake/trend"], "lake", 3)
    assert task["arguments"][:2] == ["--event-table", "trend"]
    assert Path(task["application"]).is_file()
    check = found["dags"]["quality"]["tasks"]["check_trend"]
    assert (check["operator"], check["outlets"], check["pool"]) == (
        "CheckEventTables",
        ["quality/trend"],
        "quality",
    )


def test_the_events_of_all_topics_have_one_task_that_appends_and_one_that_checks(
    loaded: dict[str, Any],
) -> None:
    task = loaded["dags"]["compaction"]["tasks"]["append_events"]
    assert (task["outlets"], task["pool"], task["retries"]) == (["lake/events"], "lake", 3)
    assert task["arguments"][0] == "--event-table"
    check = loaded["dags"]["quality"]["tasks"]["check_events"]
    assert (check["operator"], check["outlets"]) == ("CheckEventTables", ["quality/events"])


def test_without_events_in_the_lake_there_is_no_task_for_them(
    tmp_path: Path, load: Callable[[dict[str, str]], Loaded]
) -> None:
    found = load(airflow.environment(Settings.of(home=tmp_path)) | {"FOLDLAKE_LAKE_EVENT_TABLES": "off"})

    assert "append_events" not in found["dags"]["compaction"]["tasks"]
    assert "check_events" not in found["dags"]["quality"]["tasks"]
