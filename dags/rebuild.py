"""The DAG that builds a new version of a read model beside the live one, verifies it, and promotes it."""

from airflow.sdk import DAG, Param

from include.airflow.names import REBUILD_DAG, dag_arguments
from include.airflow.stage_tasks import plan_tasks, promotion_fields, reason_field
from include.airflow.web import read_model_labels
from include.declarations.load import load_catalog
from include.rebuild.plan import REBUILD, failure_table
from include.settings import Settings
from include.versions.start_rule import ALLOWED

DOCS = f"""
### Builds a new version of a read model and promotes it

Press **Trigger**, then choose the read model and state the reason. The new version is folded from the first event that counts while the
live version keeps answering lookups. It is promoted only if every key's state, in the changelog and in a second, independent
fold, equals what the log yields. Before that, it is compared with the live version: the task `compare` links the report, and `approve`
shows what changes. Without approval, it is promoted unless a threshold is exceeded. The replaced version is kept for a rollback during
the grace time; the DAG `retirement` retires it.

**To stop it**, mark the run as **failed**: its version is abandoned within 30 seconds, and what it leaves is removed. A request that is refused
skips all tasks, and the run's note says why.

{failure_table(REBUILD)}

If this run is killed at any point, readers get the old version or the new one, never a mix. See `docs/rebuild.md`.
"""

SETTINGS = Settings()
MODELS = load_catalog(SETTINGS.declaration_folders).models
FORM = {
    "read_model": Param(
        next(iter(MODELS)),
        enum=list(MODELS),
        values_display=read_model_labels(SETTINGS, MODELS),
        title="Read model",
        description="The read model to rebuild.",
    ),
    "reason": reason_field("Stored with the version and as this run's note."),
    "fold_revision": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Fold revision",
        description="A revision in the read model's module. Empty: the newest.",
    ),
    "start": Param(
        None,
        type=["null", "string"],
        title="Start",
        description="Where the new version starts to count: "
        + ALLOWED.replace("`", "")
        + ". Empty: where the live version does.",
    ),
    **promotion_fields(SETTINGS.rebuild.grace_h),
}

with DAG(
    dag_id=REBUILD_DAG,
    schedule=None,
    description="Builds a new version of a read model, verifies it and promotes it",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    # The registry rejects a second rebuild of the same read model with a reason: it must not wait in Airflow's queue.
    **dag_arguments("rebuild", "spark", max_active_runs=16),
):
    plan_tasks(REBUILD)
