"""Fills Airflow's database and log folder with the history of a year: `python -m tests.support.airflow_history --help`.

A process of its own, with Airflow's environment: Airflow reads its configuration when it is imported. Each run of the DAG `compaction`
emits an asset event, which triggers a run of the DAG `quality`, as in operation.
"""

import argparse
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from airflow.models.asset import AssetEvent
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import func, insert, select

BATCH_RUNS = 2_000
# Of a compaction's task: about the size of the log of a compaction that merges little, without debug output.
LOG_LINE = (
    b'{"timestamp":"2026-01-01T00:00:00Z","level":"info","event":"balance: merged 1,204 keys into 7,407"}\n'
)
LOG_LINES = 80


def main() -> None:
    """Insert runs of both DAGs, evenly distributed over the days, and write the logs of their tasks."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--runs", type=int, required=True, help="runs of each DAG")
    arguments.add_argument(
        "--days", type=float, required=True, help="time between the first run and the last"
    )
    arguments.add_argument("--until-days-ago", type=float, default=0.0, help="the last run (now)")
    arguments.add_argument("--logs", type=Path, help="Airflow's log folder; without it, no logs are written")
    given = arguments.parse_args()
    runs, logs = given.runs, given.logs
    newest = datetime.now(UTC) - timedelta(days=given.until_days_ago)
    step = timedelta(days=given.days) / runs
    starts = (newest - step * (runs - number - 1) for number in range(runs))
    while batch := list(islice(starts, BATCH_RUNS)):
        with create_session(scoped=False) as session:
            first = (session.scalar(select(func.max(DagRun.id))) or 0) + 1
            compactions = [
                _run(first + n, "compaction", "scheduled", started) for n, started in enumerate(batch)
            ]
            checks = [
                _run(first + len(batch) + n, "quality", "asset_triggered", started)
                for n, started in enumerate(batch)
            ]
            session.execute(insert(DagRun), compactions + checks)
            session.execute(insert(TaskInstance), [_task(run) for run in compactions + checks])
            session.execute(insert(XComModel), [_xcom(run) for run in compactions])
            session.execute(insert(AssetEvent), [_event(run) for run in compactions])
            session.execute(insert(Log), [row for run in compactions + checks for row in _audit(run)])
        if logs is not None:
            for run in compactions:
                _write_log(logs, run, LOG_LINES)
            for run in checks:
                _write_log(logs, run, 3)


def _run(number: int, dag_id: str, run_type: str, started: datetime) -> dict[str, Any]:
    return {
        "id": number,
        "dag_id": dag_id,
        "run_id": f"{run_type}__{started.isoformat()}",
        "run_type": run_type,
        # The mapped attribute of the column `state`.
        "_state": "success",
        "logical_date": started if run_type == "scheduled" else None,
        "run_after": started,
        "queued_at": started,
        "start_date": started,
        "end_date": started + timedelta(seconds=30),
        "data_interval_start": started,
        "data_interval_end": started,
        "conf": {},
        "clear_number": 0,
        "span_status": "not_started",
    }


def _task(run: dict[str, Any]) -> dict[str, Any]:
    is_compaction = run["dag_id"] == "compaction"
    return {
        "id": uuid.uuid4(),
        "dag_id": run["dag_id"],
        "run_id": run["run_id"],
        "task_id": _task_id(run),
        "map_index": -1,
        "state": "success" if is_compaction else "skipped",
        "start_date": run["start_date"],
        "end_date": run["end_date"],
        "duration": 30.0,
        "try_number": 1,
        "max_tries": 3,
        "pool": "lake" if is_compaction else "quality",
        "pool_slots": 1,
        "queue": "default",
        "operator": "SparkSubmitOperator",
        "span_status": "not_started",
    }


def _task_id(run: dict[str, Any]) -> str:
    return "compact_balance" if run["dag_id"] == "compaction" else "check_balance"


def _xcom(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "dag_run_id": run["id"],
        "dag_id": run["dag_id"],
        "run_id": run["run_id"],
        "task_id": _task_id(run),
        "map_index": -1,
        "key": "skipmixin_key",
        "value": {},
        "timestamp": run["end_date"],
    }


def _event(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "asset_id": 1,
        "source_dag_id": run["dag_id"],
        "source_run_id": run["run_id"],
        "source_task_id": _task_id(run),
        "source_map_index": -1,
        "timestamp": run["end_date"],
        "extra": {},
    }


def _audit(run: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for event in ("running", "success"):
        yield {
            "dttm": run["end_date"],
            "dag_id": run["dag_id"],
            "task_id": _task_id(run),
            "run_id": run["run_id"],
            "map_index": -1,
            "event": event,
            "owner": "foldlake",
        }


def _write_log(logs: Path, run: dict[str, Any], lines: int) -> None:
    path = logs / f"dag_id={run['dag_id']}" / f"run_id={run['run_id']}" / f"task_id={_task_id(run)}"
    path.mkdir(parents=True, exist_ok=True)
    log = path / "attempt=1.log"
    log.write_bytes(LOG_LINE * lines)
    written_s = run["end_date"].timestamp()
    for changed in (log, path, path.parent):
        os.utime(changed, (written_s, written_s))


if __name__ == "__main__":
    main()
