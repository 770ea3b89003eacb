"""The DAG that removes what is old: Airflow's runs and logs, reports, and records of ended versions."""

from datetime import timedelta

from airflow.sdk import DAG, CronTriggerTimetable, task

from include.airflow.names import MAINTENANCE_DAG, dag_arguments

DOCS = """
### Removes what is old

Every day at 02:30 UTC, one task for each kind; each returns what it removed:

| task | removes | setting |
|---|---|---|
| `airflow_database` | ended runs with their tasks, events, the audit log; never a run that has not ended, nor the newest run of a DAG | `FOLDLAKE_RETENTION_AIRFLOW_H` |
| `airflow_logs` | logs of tasks and of Airflow's processes; never those of the newest run of a DAG | `FOLDLAKE_RETENTION_AIRFLOW_H` |
| `reports` | reports of quality checks and version diffs | `FOLDLAKE_RETENTION_REPORTS_H` |
| `version_registry` | retired and abandoned versions, once nothing is left of them | `FOLDLAKE_RETENTION_ENDED_VERSIONS` |

A task can be killed and repeated at any point. While this DAG is **paused**, all of this grows. What else grows, and what limits it, is
described in `docs/operations.md`.
"""

ARGUMENTS = dag_arguments("maintenance")
ARGUMENTS["default_args"] |= {
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
    "execution_timeout": timedelta(hours=1),
}

with DAG(
    dag_id=MAINTENANCE_DAG,
    schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC"),
    description="Removes old runs, logs, reports and records of ended versions",
    doc_md=DOCS,
    is_paused_upon_creation=False,
    **ARGUMENTS,
):

    @task
    def airflow_database() -> str:
        """Remove ended runs and events from Airflow's database."""
        from include.airflow.maintenance import clean_airflow_database

        return clean_airflow_database()

    @task
    def airflow_logs() -> str:
        """Remove the logs of ended tasks, and of Airflow's own processes."""
        from include.airflow.maintenance import clean_airflow_logs

        return clean_airflow_logs()

    @task
    def reports() -> str:
        """Remove the reports of quality checks and version diffs."""
        from include.airflow.maintenance import clean_reports

        return clean_reports()

    @task
    def version_registry() -> str:
        """Remove ended versions from the version registry."""
        from include.airflow.maintenance import clean_version_registry

        return clean_version_registry()

    airflow_database()
    airflow_logs()
    reports()
    version_registry()
