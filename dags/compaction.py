"""The DAG that brings the lake up to date: one task for each read model and for each event table."""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.python import BranchPythonOperator
from airflow.sdk import DAG, Asset, Param
from airflow.sdk.exceptions import AirflowSkipException

from include.airflow.names import (
    ALL_TABLES,
    COMPACTION_DAG,
    LAKE_POOL,
    TOPICS_TASK,
    changelog_asset,
    dag_arguments,
    lake_asset,
)
from include.airflow.quality_operators import TriggerCheckIfDue
from include.airflow.run_hooks import postpone_after_start
from include.airflow.spark_tasks import lake_task
from include.airflow.web import describe_table, describe_tables, read_model_labels
from include.declarations.topic_tables import FOLDER, load_lake_catalog
from include.settings import Settings

DOCS = """
### Brings the lake's tables up to date

The task `choose` finds out which tables have something new, or takes those that the form names; the tasks of all others are skipped.

One task for each read model: a Spark job that merges new records of the live version's changelog into `lake/<model>`. Each
commit stores the changelog offsets up to which it has read. OPTIMIZE and VACUUM follow when they are worthwhile. A killed run is
harmless: the next one continues from the offsets in the table. Each successful run emits an event of the asset `lake/<model>`. The task
after it, `check_due_<model>`, starts a quality check, or is skipped with the reason why none is due.

One task for each event table: a Spark job that appends the new events of its topic to `lake/<event table>`. Each commit stores
the topic's offsets up to which it has read. The task `append_events` does so for the tables `lake/events/<topic>` of the read models'
events, one after the other, when the other tasks have run.

The DAG runs every `FOLDLAKE_COMPACTION_INTERVAL_S` seconds (0: only manually). Missed runs are not repeated: one run merges
everything new. The tasks of tables with nothing new are **skipped** in a scheduled run, except that once an hour they run for VACUUM.
A run that somebody has started does not wait for the tasks of a scheduled one that have not begun. While the DAG is **paused**, the tables stay as they are.

**Manually**: press **Trigger**, or run `./foldlake compact`. `./foldlake lake` shows the tables and their lag. The tables are
described in `docs/lake.md`.
"""
TASK_DOCS = """
Merges the live changelog of `{model}` into its table. The last lines of the log show how many records were read, how many
keys were merged and deleted, and files and bytes before and after. Skipped unless the task `choose` has chosen it.
"""

CHECK_DOCS = """
Starts a quality check of `{model}`, with an event of the asset `check-due/{model}`. **Skipped**, with the reason and the time of the last
check in its log, if nothing is new since that, if one is running, and within nine times the duration of the last one.
"""

APPEND_TASK_DOCS = """
Appends the new events of topic `{topic}` to the event table `{table}`. The last lines of the log show how many records were read and
how many rows were appended. Skipped unless the task `choose` has chosen it.
"""

EVENTS_TASK_DOCS = """
Appends the new events of each topic to `lake/events/<topic>`. Which topics: `FOLDLAKE_LAKE_EVENT_TABLES`. One that cannot be appended to does not
hold up the others; the task fails after them. Skipped unless the task `choose` has chosen it.
"""

SETTINGS = Settings()
CATALOG = load_lake_catalog(SETTINGS)
MODELS, EVENT_TABLES, OF_TOPICS = CATALOG.models, CATALOG.declared, CATALOG.of_topics
OPTIMIZE = "{{ 'always' if params.optimize else 'when-worth-it' }}"
# The table of the form if it is that of a topic, else those of all topics.
ONE_TOPIC = f"{{{{ params.read_model if params.read_model.startswith('{FOLDER}/') else '{FOLDER}' }}}}"
# Tables of read models wait for no event: other tasks that wait for the pool have weight 1 at least.
LAST = 0
FORM = {
    "read_model": Param(
        ALL_TABLES,
        enum=[ALL_TABLES, *MODELS, *EVENT_TABLES, *OF_TOPICS],
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
CHOICE_DOCS = "Finds out which tables the run brings up to date. Its log says which are complete already."


def chosen_tasks(params: dict[str, Any], dag_run: Any) -> list[str]:  # noqa: ANN401 - Airflow's
    """Return the ids of the tasks that are to run."""
    # Not when DAGs are parsed.
    from include.airflow.client import airflow_api
    from include.airflow.lake_runs import chosen_tables, earlier_scheduled_run, tasks_of
    from include.airflow.quality_operators import SCHEDULED, kind_of

    postpone_after_start(dag_run.run_id, SETTINGS.airflow.start_delay_s)
    is_scheduled = kind_of(dag_run.run_type) == SCHEDULED
    if is_scheduled:
        active = airflow_api(SETTINGS.home, SETTINGS.airflow).active_runs(COMPACTION_DAG)
        if (earlier := earlier_scheduled_run(active, dag_run.run_id)) is not None:
            raise AirflowSkipException(
                f"The scheduled run {earlier} has not ended: the next one merges everything new."
            )
    names = chosen_tables(Settings(), CATALOG, params["read_model"], is_scheduled=is_scheduled)
    return tasks_of(CATALOG, names)


with DAG(
    dag_id=COMPACTION_DAG,
    schedule=timedelta(seconds=SETTINGS.lake.compaction_interval_s)
    if SETTINGS.lake.compaction_interval_s
    else None,
    description="Merges the changelogs into the lake's tables, and appends events to event tables",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    # A run for one table must not wait until a scheduled one has brought up all of them: the pool keeps their tasks apart.
    **dag_arguments("lake", "spark", max_active_runs=16),
):
    choose = BranchPythonOperator(
        task_id="choose",
        python_callable=chosen_tasks,
        retries=3,
        retry_delay=timedelta(seconds=10),
        execution_timeout=timedelta(minutes=10),
        doc_md=CHOICE_DOCS,
    )
    for name in MODELS:
        compacted = lake_task(
            f"compact_{name}",
            "compaction",
            ["--read-model", name, "--optimize", OPTIMIZE],
            **OF_EVERY_TASK,
            inlets=[Asset(changelog_asset(name))],
            outlets=[Asset(lake_asset(name))],
            post_execute=describe_table(name),
            doc_md=TASK_DOCS.format(model=name),
        )
        check_due = TriggerCheckIfDue(
            task_id=f"check_due_{name}",
            read_model=name,
            retries=3,
            retry_delay=timedelta(seconds=10),
            execution_timeout=timedelta(minutes=5),
            doc_md=CHECK_DOCS.format(model=name),
        )
        choose >> compacted >> check_due
    for name, table in EVENT_TABLES.items():
        choose >> lake_task(
            f"append_{name}",
            "event_tables",
            ["--event-table", name, "--optimize", OPTIMIZE],
            **OF_EVERY_TASK,
            outlets=[Asset(lake_asset(name))],
            post_execute=describe_table(name),
            doc_md=APPEND_TASK_DOCS.format(topic=table.source_topic, table=name),
        )
    if OF_TOPICS:
        # One task for all of them: a task of its own would cost each topic seconds, and these events are in the log anyway.
        choose >> lake_task(
            TOPICS_TASK,
            "event_tables",
            ["--event-table", ONE_TOPIC, "--optimize", OPTIMIZE],
            **OF_EVERY_TASK,
            priority_weight=LAST,
            outlets=[Asset(lake_asset(FOLDER))],
            post_execute=describe_tables(FOLDER, OF_TOPICS),
            doc_md=EVENTS_TASK_DOCS,
        )
