"""The DAG that retires what is due and tidies up after rebuilds that could not."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from include.airflow.names import RETIREMENT_DAG, dag_arguments

DOCS = """
### Retires what is due, and tidies up

Every 15 minutes:

* previous versions whose grace time is over are retired: their query ends, the nodes remove their stores, and topic,
  checkpoint and staging are deleted;
* candidates whose rebuild has ended, or is gone, are abandoned in the same way;
* whatever a retired or abandoned version has left is removed.

To retire one previous version now, press Trigger and name it. The live version is never touched.
"""

with DAG(
    dag_id=RETIREMENT_DAG,
    schedule=timedelta(minutes=15),
    description="Retires versions whose grace time is over, and removes leftovers",
    doc_md=DOCS,
    params={
        "read_model": Param(
            None, type=["null", "string"], title="Read model", description="Of the version to retire now."
        ),
        "version": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Version",
            description="A previous version to retire now. Empty: whatever is due.",
        ),
    },
    is_paused_upon_creation=False,
    **dag_arguments("rebuild"),
):

    @task(retries=2, execution_timeout=timedelta(minutes=10))
    def retire_due(params: dict[str, Any] | None = None) -> list[str]:
        """Retire, abandon and remove what is due, or retire the version named."""
        from include.airflow.rebuild_actions import sweep_all

        form = params or {}
        return sweep_all(form.get("read_model"), form.get("version"))

    retire_due()
