"""The DAG that makes a previous version of a read model live again."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from include.airflow.names import ROLLBACK_DAG, dag_arguments
from include.airflow.spark_tasks import promote_lake_task
from include.declarations.read_model import load_read_models
from include.settings import Settings

DOCS = """
### Makes a previous version live again

A version that was replaced is kept, folded and loaded for its grace time: going back to it is one record in the version
registry, which the query nodes follow within a second; then one commit for the lake's table. The version that was live
becomes the previous one: rolling back once more undoes it. A run that had to wait while another version became live does
nothing, unless it names its version.

**Press Trigger**, say which read model and why. `./foldlake versions` lists the versions. A retired version cannot come back:
rebuild with its fold revision instead.
"""

MODELS = load_read_models(Settings().read_models_dir)
FORM = {
    "read_model": Param(
        next(iter(MODELS)), enum=list(MODELS), title="Read model", description="What is rolled back."
    ),
    "version": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Version",
        description="The version to be live again. Empty: the one that was live before.",
    ),
    "reason": Param(
        type="string", minLength=1, maxLength=500, title="Reason", description="Why: it is this run's note."
    ),
}
MODEL = "{{ params.read_model }}"

with DAG(
    dag_id=ROLLBACK_DAG,
    schedule=None,
    description="Makes a previous version of a read model live again, lake table included",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    **dag_arguments("rebuild", "spark"),
):

    @task(retries=3, execution_timeout=timedelta(minutes=5))
    def choose_version(
        params: dict[str, Any] | None = None,
        dag_run: Any = None,  # noqa: ANN401 - Airflow's
        run_id: str | None = None,
    ) -> int:
        """Check the form, and choose the version once: after the rollback, the one that was live before is another."""
        from include.airflow.rebuild_actions import choose

        return choose(dag_run, params or {}, ROLLBACK_DAG, run_id or "")

    @task(retries=3, execution_timeout=timedelta(minutes=5))
    def roll_back(read_model: str, number: int) -> None:
        """Make the version live."""
        from include.airflow.rebuild_actions import roll_back as action

        action(read_model, number)

    roll_back(MODEL, choose_version()) >> promote_lake_task()  # type: ignore[arg-type]  # what it will have returned
