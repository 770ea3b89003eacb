"""The DAG that retires versions that are due, and removes what ended rebuilds left behind."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from include.airflow.names import RETIREMENT_DAG, dag_arguments

DOCS = """
### Retires versions that are due, and cleans up

Every 15 minutes:

* previous versions whose grace time has ended are retired: their query ends, the nodes remove their stores, and topic,
  checkpoint and staging are deleted;
* candidates whose rebuild has ended or no longer exists are abandoned in the same way: at once if somebody ends a rebuild's run;
* leftovers of retired and abandoned versions are removed.

To retire one previous version now, press **Trigger** and name it. The live version is never retired.
"""

with DAG(
    dag_id=RETIREMENT_DAG,
    schedule=timedelta(minutes=15),
    description="Retires versions whose grace time has ended, and removes leftovers",
    doc_md=DOCS,
    params={
        "read_model": Param(
            None,
            type=["null", "string"],
            title="Read model",
            description="Required with a version.",
        ),
        "version": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Version",
            description="A previous version to retire now. Empty: all versions that are due.",
        ),
    },
    is_paused_upon_creation=False,
    **dag_arguments("rebuild"),
):

    @task(retries=2, execution_timeout=timedelta(minutes=10))
    def retire_due(params: dict[str, Any] | None = None) -> list[str]:
        """Retire, abandon and remove what is due, or retire the version that the form names."""
        from include.airflow.maintenance import retire_due_versions

        form = params or {}
        return retire_due_versions(form.get("read_model"), form.get("version"))

    retire_due()
