"""The DAG that makes a previous version of a read model live again."""

from airflow.sdk import DAG, Param

from include.airflow.names import ROLLBACK_DAG, dag_arguments
from include.airflow.stage_tasks import plan_tasks, reason_field
from include.airflow.web import read_model_labels
from include.declarations.load import load_catalog
from include.rebuild.plan import ROLLBACK, failure_table
from include.settings import Settings

DOCS = f"""
### Makes a previous version live again

During its grace time, a replaced version is still folded and stays loaded on the query nodes. A rollback is one record in the
version registry, which the query nodes follow within a second, then one commit for the lake's table. The version that was live
becomes the previous one, so a second rollback undoes the first. A rollback that names no version does nothing if another
version became live after it was requested.

The version must pass the same gate as a new one: the stream driver folds it in real time, and every query node has it up to all
events that the live version contains. Otherwise nothing is changed, and the task's log and the run's note name what it lacks.
**Force** makes it live nevertheless: lookups then answer from what it has.

A request that is refused, because there is no such version for example, skips all tasks, and the run's note says why.

Press **Trigger**, then choose the read model and state the reason. `./foldlake versions` lists the versions. A retired
version cannot come back: rebuild with its fold revision instead.

{failure_table(ROLLBACK)}
"""

SETTINGS = Settings()
MODELS = load_catalog(SETTINGS.declaration_folders).models
FORM = {
    "read_model": Param(
        next(iter(MODELS)),
        enum=list(MODELS),
        values_display=read_model_labels(SETTINGS, MODELS),
        title="Read model",
        description="The read model to roll back.",
    ),
    "version": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Version",
        description="The version to make live. Empty: the one that was live before.",
    ),
    "reason": reason_field("Stored as this run's note."),
    "force": Param(
        False,  # noqa: FBT003 - the form's default
        type="boolean",
        title="Force",
        description="On: roll back even if the version lacks events or a node has not loaded it; the run's note names what it lacks.",
    ),
}

with DAG(
    dag_id=ROLLBACK_DAG,
    schedule=None,
    description="Makes a previous version of a read model live again, lake table included",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    **dag_arguments("rebuild", "spark"),
):
    plan_tasks(ROLLBACK)
