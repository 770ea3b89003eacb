"""Removes old logs of Airflow: of tasks, and of its own processes."""

from datetime import datetime
from pathlib import Path

from include.maintenance.old_files import Removed, remove_old

# Airflow's `log_filename_template` begins with these two folders.
DAG_FOLDER = "dag_id="
RUN_FOLDER = "run_id="


def remove_old_logs(logs: Path, before: datetime) -> Removed:
    """Remove the log files that were last written before this time, except those of each DAG's newest run.

    The newest run may still be running: the stream's runs for months, and may log nothing for a long time.
    """
    newest = {run for dag in logs.glob(f"{DAG_FOLDER}*") if (run := _newest_run(dag)) is not None}
    return remove_old(logs, before, kept=newest)


def _newest_run(dag: Path) -> Path | None:
    runs = ((path.stat().st_mtime, path) for path in dag.glob(f"{RUN_FOLDER}*"))
    return max(runs, default=(0.0, None))[1]
