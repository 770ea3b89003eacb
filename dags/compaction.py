"""The DAG that brings the lake up to date: one task for each read model and for each event table."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, Param

from include.airflow.checks.offer_check import OfferCheck
from include.airflow.names import COMPACTION_DAG, LAKE_POOL, changelog_asset, dag_arguments, lake_asset
from include.airflow.spark_tasks import lake_task, skip_if_appended, skip_if_compacted
from include.airflow.web.asset_details import describe_table
from include.airflow.web.form_labels import read_model_labels
from include.declarations.topic_tables.selection import load_lake_catalog
from include.declarations.topic_tables.topic_table import FOLDER
from include.settings import Settings

DOCS = """
### Brings the lake's tables up to date

One task for each read model: a Spark job that merges new records of the live version's changelog into `lake/<model>`. Each
commit stores the changelog offsets up to which it has read. OPTIMIZE and VACUUM follow when they are worthwhile. A killed run is
harmless: the next one continues from the offsets in the table. Each successful run emits an event of the asset `lake/<model>`. The task
after it, `check_due_<model>`, starts a quality check, or is skipped with the reason why none is due.

One task for each event table: a Spark job that appends the new events of its topic to `lake/<event table>`. Each commit stores
the topic's offsets up to which it has read. The task `append_events` does so for the tables `lake/events/<topic>` of the read models'
events, one after the other, when the other tasks have run.

The DAG runs every `FOLDLAKE_COMPACTION_INTERVAL_S` seconds (0: only manually). Missed runs are not repeated: one run merges
everything new. A scheduled run with nothing new is **skipped**, except that once an hour it runs for VACUUM. While the DAG is **paused**, the tables stay as they are.

**Manually**: press **Trigger**, or run `./foldlake compact`. `./foldlake lake` shows the tables and their lag. The tables are
described in `docs/lake.md`.
"""
TASK_DOCS = """
Merges the live changelog of `{model}` into its table. The last lines of the log show how many records were read, how many
keys were merged and deleted, and files and bytes before and after. Skipped when the run is for
another read model, and when a scheduled run has nothing to do.
"""

CHECK_DOCS = """
Starts a quality check of `{model}`, with an event of the asset `check-due/{model}`. **Skipped**, with the reason and the time of the last
check in its log, if nothing is new since that, if one is running, and within nine times the duration of the last one.
"""

APPEND_TASK_DOCS = """
Appends the new events of topic `{topic}` to the event table `{table}`. The last lines of the log show how many records were read and
how many rows were appended. Skipped when the run is for another table, and when a scheduled run has nothing to do.
"""

EVENTS_TASK_DOCS = """
Appends the new events of each topic to `lake/events/<topic>`. Which topics: `FOLDLAKE_LAKE_EVENTS`. One that cannot be appended to does not
hold up the others; the task fails after them. Skipped when the run is for another table, and when a scheduled run has nothing to do.
"""

SETTINGS = Settings()
CATALOG = load_lake_catalog(SETTINGS)
MODELS, EVENT_TABLES, OF_TOPICS = CATALOG.models, CATALOG.declared, CATALOG.of_topics
OPTIMIZE = "{{ 'always' if params.optimize else 'when-worth-it' }}"
ALL = "all"
# The table of the form if it is that of a topic, else those of all topics.
ONE_TOPIC = f"{{{{ params.read_model if params.read_model.startswith('{FOLDER}/') else '{FOLDER}' }}}}"
# Tables of read models wait for no event: other tasks that wait for the pool have weight 1 at least.
LAST = 0
FORM = {
    "read_model": Param(
        ALL,
        enum=[ALL, *MODELS, *EVENT_TABLES, *OF_TOPICS],
        values_display=read_model_labels(SETTINGS, MODELS),
        title="Read model or event table",
        description="The table to bring up to date.",
    ),
    "optimize": Param(
        default=False,
        type="boolean",
        title="OPTIMIZE and VACUUM in any case",
        description="Even if few files are small and the last VACUUM is less than an hour ago.",
    ),
}
OF_EVERY_TASK: dict[str, Any] = {
    "pool": LAKE_POOL,
    "retries": 3,
    "retry_delay": timedelta(seconds=10),
    "execution_timeout": timedelta(hours=2),
}

with DAG(
    dag_id=COMPACTION_DAG,
    schedule=timedelta(seconds=SETTINGS.lake.compaction_interval_s)
    if SETTINGS.lake.compaction_interval_s
    else None,
    description="Merges the changelogs into the lake's tables, and appends events to event tables",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    **dag_arguments("lake", "spark"),
):
    for name, model in MODELS.items():
        compacted = lake_task(
            f"compact_{name}",
            "compaction",
            ["--read-model", name, "--optimize", OPTIMIZE],
            pre_execute=skip_if_compacted(model, ALL),
            **OF_EVERY_TASK,
            inlets=[Asset(changelog_asset(name))],
            outlets=[Asset(lake_asset(name))],
            post_execute=describe_table(name),
            doc_md=TASK_DOCS.format(model=name),
        )
        compacted >> OfferCheck(
            task_id=f"check_due_{name}",
            read_model=name,
            retries=3,
            retry_delay=timedelta(seconds=10),
            execution_timeout=timedelta(minutes=5),
            doc_md=CHECK_DOCS.format(model=name),
        )
    for name, table in EVENT_TABLES.items():
        lake_task(
            f"append_{name}",
            "event_tables",
            ["--event-table", name, "--optimize", OPTIMIZE],
            pre_execute=skip_if_appended([table], ALL, name),
            **OF_EVERY_TASK,
            outlets=[Asset(lake_asset(name))],
            post_execute=describe_table(name),
            doc_md=APPEND_TASK_DOCS.format(topic=table.source_topic, table=name),
        )
    if OF_TOPICS:
        # One task for all of them: a task of its own would cost each topic seconds, and these events are in the log anyway.
        lake_task(
            "append_events",
            "event_tables",
            ["--event-table", ONE_TOPIC, "--optimize", OPTIMIZE],
            pre_execute=skip_if_appended(OF_TOPICS.values(), ALL, FOLDER),
            **OF_EVERY_TASK,
            weight_rule="absolute",
            priority_weight=LAST,
            outlets=[Asset(lake_asset(FOLDER))],
            doc_md=EVENTS_TASK_DOCS,
        )
