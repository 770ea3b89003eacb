"""The DAG `maintenance` of a running stack removes what is old while the stream runs on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from include.airflow.client import AirflowApi, airflow_api, airflow_home
from include.airflow.dag_run import DagRun, RunEnded, TaskFailure
from include.airflow.names import COMPACTION_DAG, MAINTENANCE_DAG, STREAM_DAG
from include.files import private_umask
from include.quality.report import report_path
from include.settings import CHECKOUT, Settings
from stack.components import airflow
from stack.launchers import stream_driver
from tests.support.waiting import wait_until

TIMEOUT_S = 300
TASKS = ("airflow_database", "airflow_logs", "reports", "version_registry")
OLD_RUNS = 50
DAY_S = 86_400


@pytest.fixture(scope="module")
def aged_stack(stack: Settings) -> Settings:
    """The whole stack, with runs, logs and reports of a time long ago."""
    wait_until(lambda: stream_driver.running(stack.home) is not None, "the driver runs", TIMEOUT_S)
    subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-m", "tests.support.airflow_history"),
            *(f"--runs={OLD_RUNS}", "--days=300", "--until-days-ago=60", f"--logs={logs(stack)}"),
        ],
        cwd=CHECKOUT,
        env={**os.environ, **airflow.environment(stack)},
        check=True,
    )
    for run_id, days_ago in (("old", 91), ("recent", 89)):
        path = report_path(stack.home, run_id)
        # As the process that writes reports does.
        with private_umask():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("report")
        written_s = time.time() - days_ago * DAY_S
        os.utime(path, (written_s, written_s))
    return stack


def logs(settings: Settings) -> Path:
    return airflow_home(settings.home) / "logs"


def old_runs(api: AirflowApi) -> list[str]:
    """Return the runs that the fixture has inserted; Airflow names its own runs with other times."""
    return [run for run in api.runs(COMPACTION_DAG, limit=100) if run.startswith("scheduled__")]


def test_the_dag_removes_what_is_old_and_the_stream_runs_on(aged_stack: Settings) -> None:
    api = airflow_api(aged_stack.home, aged_stack.airflow)
    driver = stream_driver.running(aged_stack.home)
    streams = api.active_runs(STREAM_DAG)
    assert len(old_runs(api)) == OLD_RUNS

    run = DagRun.trigger(aged_stack, MAINTENANCE_DAG, {})
    events = list(run.follow(TASKS, timeout_s=TIMEOUT_S))

    assert [event for event in events if isinstance(event, TaskFailure)] == []
    assert events[-1] == RunEnded(succeeded=True)
    # The newest run of a kind is kept.
    assert len(old_runs(api)) == 1
    assert len(list(logs(aged_stack).glob(f"dag_id={COMPACTION_DAG}/run_id=scheduled__*"))) <= 1
    assert not report_path(aged_stack.home, "old").exists()
    assert report_path(aged_stack.home, "recent").exists()
    assert stream_driver.running(aged_stack.home) == driver
    assert api.active_runs(STREAM_DAG) == streams
    assert api.running_tasks(STREAM_DAG, streams[0]) == ["driver"]


def test_a_task_reports_what_it_removed(aged_stack: Settings) -> None:
    api = airflow_api(aged_stack.home, aged_stack.airflow)
    run_id = next(iter(api.runs(MAINTENANCE_DAG)))

    lines = api.task_log(MAINTENANCE_DAG, run_id, "airflow_database", 1)

    assert any("runs with their tasks" in line for line in lines)
