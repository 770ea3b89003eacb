"""The DAG that keeps the lake up to date: one task for each read model."""

from datetime import timedelta

from airflow.sdk import DAG, Asset, Param

from include.airflow.names import COMPACTION_DAG, LAKE_POOL, changelog_asset, dag_arguments, lake_asset
from include.airflow.spark_tasks import lake_task, skip_unless_asked_for
from include.declarations.read_model import load_read_models
from include.settings import Settings

DOCS = """
### Keeps the tables in the lake up to date

For each read model one task: a Spark job that merges what is new on the live version's changelog into `lake/<model>`, in
commits that say up to where; then OPTIMIZE and VACUUM, where they are worth their time. It may be killed at any point: the
next run goes on from where the table says it is. Each run that did so emits an event of the asset `lake/<model>`, and
the quality check follows.

It runs every `FOLDLAKE_COMPACTION_INTERVAL_S` seconds (0: only by hand). Missed runs are not made up for: one run takes in
all that is new. **Paused**, the tables stay as they are, and the next run takes longer.

**By hand**: press Trigger, or `./foldlake compact`. `./foldlake lake` shows the tables and how far behind they are.
`docs/lake.md` says what is in them.
"""
TASK_DOCS = """
Merges the live changelog of `{model}` into its table. The last lines of the log say how many records were read, how many
keys merged and deleted, and files and bytes before and after. Skipped where the run is about another read model.
"""

SETTINGS = Settings()
MODELS = load_read_models(SETTINGS.read_models_dir)
ALL = "all"
FORM = {
    "read_model": Param(
        ALL, enum=[ALL, *MODELS], title="Read model", description="Whose table is brought up to date."
    ),
    "optimize": Param(
        default=False,
        type="boolean",
        title="OPTIMIZE and VACUUM in any case",
        description="Also where few files are small, and the last VACUUM is not an hour ago.",
    ),
}

with DAG(
    dag_id=COMPACTION_DAG,
    schedule=timedelta(seconds=SETTINGS.lake.compaction_interval_s)
    if SETTINGS.lake.compaction_interval_s
    else None,
    description="Merges the changelogs into the lake's tables",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    **dag_arguments("lake", "spark"),
):
    for name in MODELS:
        lake_task(
            f"compact_{name}",
            "compaction",
            ["--read-model", name, "--optimize", "{{ 'always' if params.optimize else 'when-worth-it' }}"],
            pre_execute=skip_unless_asked_for(name, ALL),
            pool=LAKE_POOL,
            retries=3,
            retry_delay=timedelta(seconds=10),
            execution_timeout=timedelta(hours=2),
            inlets=[Asset(changelog_asset(name))],
            outlets=[Asset(lake_asset(name))],
            doc_md=TASK_DOCS.format(model=name),
        )
