"""The work of the DAG `retirement`: retires the version that its form names, or all versions that are due."""

from pathlib import Path

from include.airflow.login import airflow_api
from include.airflow.names import REBUILD_DAG
from include.airflow.stage_execution import fail_without_retry
from include.rebuild.errors import RequestError
from include.rebuild.retirement import retire_version, sweep
from include.settings import AirflowSettings, Settings


def retire_due_versions(read_model: str | None, version: int | None) -> list[str]:
    """Retire the given version, or all that are due; return a line for each version changed."""
    settings = Settings()
    with fail_without_retry():
        if version is None:
            return sweep(settings, lambda run_id: _has_ended(settings.home, settings.airflow, run_id))
        if not read_model:
            raise RequestError("read_model is required with version.")
        retire_version(settings, read_model, version)
        return [f"retired v{version} of {read_model}"]


def _has_ended(home: Path, airflow: AirflowSettings, run_id: str) -> bool:
    return airflow_api(home, airflow).run_state(REBUILD_DAG, run_id) not in ("queued", "running")
