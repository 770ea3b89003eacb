"""The work of the DAG `retirement`: retires the version that its form names, or all versions that are due."""

import logging

from include.airflow.runs.rebuild_runs import has_ended
from include.airflow.stage_execution import fail_without_retry, skip_refused_request
from include.rebuild.errors import RequestError
from include.rebuild.retirement import retire_version, sweep
from include.settings import Settings

LOG = logging.getLogger(__name__)


def retire_due_versions(read_model: str | None, version: int | None) -> list[str]:
    """Retire the given version, or all that are due; return a line for each version changed."""
    settings = Settings()
    with fail_without_retry():
        if version is None:
            return sweep(settings, lambda run_id: has_ended(settings, run_id))
        with skip_refused_request(LOG.info):
            if not read_model:
                raise RequestError("read_model is required with version.")
            retire_version(settings, read_model, version)
        return [f"retired v{version} of {read_model}"]
