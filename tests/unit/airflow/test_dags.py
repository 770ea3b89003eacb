"""Every DAG loads, quickly, and says what it is for and whose it is."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from include.rebuild.plan import rebuild_plan
from include.rebuild.request import RebuildRequest
from include.settings import CHECKOUT, Settings
from include.versions.registry import first_version
from stack.components import airflow

# In a process of its own: Airflow reads its configuration when it is imported.
LOAD = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
json.dump({
    "errors": bag.import_errors,
    "seconds": [stat.duration.total_seconds() for stat in bag.dagbag_stats],
    "heavy": sorted({"pyspark", "delta", "great_expectations", "pandas", "flask"} & set(sys.modules)),
    "dags": {
        dag.dag_id: {
            "doc": dag.doc_md, "tags": sorted(dag.tags), "owner": dag.owner, "description": dag.description,
            "start": str(dag.start_date), "active_runs": dag.max_active_runs,
            "tasks": {task.task_id: {
                "operator": task.task_type, "retries": task.retries, "pool": task.pool, "outlets": [asset.name for asset in task.outlets],
            } for task in dag.tasks},
        } for dag in bag.dags.values()
    },
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    settings = Settings.of(home=tmp_path_factory.mktemp("home"))
    environment = airflow.environment(settings)
    folder = environment["AIRFLOW__CORE__DAGS_FOLDER"]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOAD, folder],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index('{"errors"') :])
    return answer


def test_no_dag_fails_to_load(loaded: dict[str, Any]) -> None:
    assert loaded["errors"] == {}


def test_every_file_gives_its_dag(loaded: dict[str, Any]) -> None:
    files = CHECKOUT.joinpath("dags").glob("*.py")

    assert sorted(loaded["dags"]) == sorted(file.stem for file in files)


def test_every_dag_says_what_it_is_for_and_whose_it_is(loaded: dict[str, Any]) -> None:
    for dag_id, dag in loaded["dags"].items():
        assert len(dag["doc"]) > 100, dag_id
        assert dag["description"], dag_id
        assert "foldlake" in dag["tags"], dag_id
        assert dag["owner"] == "foldlake", dag_id


def test_every_dag_began_at_a_fixed_time_and_runs_once_at_a_time(loaded: dict[str, Any]) -> None:
    for dag_id, dag in loaded["dags"].items():
        assert dag["start"] == "2024-01-01 00:00:00+00:00", dag_id
        # A second rebuild shall be refused with a reason, by the version registry, not wait in a queue.
        assert dag["active_runs"] == (16 if dag_id == "rebuild" else 1), dag_id


def test_dag_files_are_light(loaded: dict[str, Any]) -> None:
    assert loaded["heavy"] == []
    # The first file pays for Airflow's own imports, on a busy machine too.
    assert max(loaded["seconds"]) < 20


def test_a_rebuild_has_a_task_for_each_stage_of_its_plan(loaded: dict[str, Any]) -> None:
    request = RebuildRequest("balance", "test", 1, approve=True, grace_h=1.0)
    stages = [stage.name for stage in rebuild_plan(first_version("balance", 1), request)]
    assert sorted(loaded["dags"]["rebuild"]["tasks"]) == sorted([*stages, "abandon"])


def test_the_stream_is_tried_again_when_its_driver_ends(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["stream"]["tasks"]["driver"]["retries"] > 0


def test_compaction_has_a_task_for_each_read_model_with_its_own_asset(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["compaction"]["tasks"]["compact_balance"] == {
        "operator": "SparkSubmitOperator",
        "retries": 3,
        "outlets": ["lake/balance"],
        "pool": "lake",
    }


def test_a_rebuild_is_proved_by_a_task_that_takes_a_failed_check_as_final(loaded: dict[str, Any]) -> None:
    assert loaded["dags"]["rebuild"]["tasks"]["verify"]["operator"] == "VerifyVersion"
