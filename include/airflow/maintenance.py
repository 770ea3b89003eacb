"""The work of the DAGs `maintenance`, a function for each kind of what is old, and `retirement`; each returns what it removed."""

import logging
from datetime import UTC, datetime, timedelta

from airflow.sdk.exceptions import AirflowSkipException

from include.airflow.client import airflow_home
from include.airflow.database import clean_database, database_url
from include.airflow.rebuild_operators import fail_without_retry, skip_refused_request
from include.airflow.rebuild_runs import has_ended
from include.rebuild.errors import RequestError
from include.rebuild.retirement import retire_version, sweep
from include.settings import Settings

LOG = logging.getLogger(__name__)


def clean_airflow_database() -> str:
    """Remove ended runs and events from Airflow's database."""
    settings = Settings()
    before = cutoff(settings.retention.airflow_h, "FOLDLAKE_RETENTION_AIRFLOW_H")
    if settings.airflow.url and not settings.airflow.database_url:
        raise AirflowSkipException(
            "The database of this Airflow is unknown: set FOLDLAKE_AIRFLOW_DATABASE_URL for its scheduler, or run `airflow db clean`"
            " there."
        )
    return _logged(clean_database(database_url(settings.home, settings.airflow), before))


def clean_airflow_logs() -> str:
    """Remove the logs of ended tasks, and of Airflow's own processes."""
    from include.maintenance import remove_old_logs  # noqa: PLC0415 - not when DAGs are parsed

    settings = Settings()
    before = cutoff(settings.retention.airflow_h, "FOLDLAKE_RETENTION_AIRFLOW_H")
    return _logged(str(remove_old_logs(airflow_home(settings.home) / "logs", before)))


def clean_reports() -> str:
    """Remove the reports of quality checks, and the version diffs."""
    from include.maintenance import remove_old  # noqa: PLC0415
    from include.quality.report import reports_directory  # noqa: PLC0415
    from include.rebuild.comparison.report import comparisons_directory  # noqa: PLC0415

    settings = Settings()
    before = cutoff(settings.retention.reports_h, "FOLDLAKE_RETENTION_REPORTS_H")
    removed = remove_old(reports_directory(settings.home), before)
    return _logged(str(removed + remove_old(comparisons_directory(settings.home), before)))


def clean_version_registry() -> str:
    """Remove ended versions from the version registry."""
    from include.maintenance import forget_ended_versions  # noqa: PLC0415

    settings = Settings()
    return _logged("; ".join(forget_ended_versions(settings, settings.retention.ended_versions)) or "nothing")


def cutoff(retention_h: float, setting: str) -> datetime:
    """Return the time before which everything is removed; raises AirflowSkipException if everything is kept."""
    if not retention_h:
        raise AirflowSkipException(f"{setting} is 0: everything is kept.")
    return datetime.now(UTC) - timedelta(hours=retention_h)


def _logged(removed: str) -> str:
    LOG.info("removed: %s", removed)
    return removed


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
