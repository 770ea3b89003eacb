"""The DAG that checks stored records against a replay of the events."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Asset, AssetAny, AssetOrTimeSchedule, CronTriggerTimetable, Param

from include.airflow.names import (
    QUALITY_DAG,
    QUALITY_POOL,
    check_due_asset,
    dag_arguments,
    lake_asset,
    quality_asset,
)
from include.airflow.quality_operators import CheckEventTables, CheckStores
from include.airflow.run_hooks import RequestedFirst
from include.airflow.spark_tasks import lake_task
from include.airflow.web import read_model_labels
from include.declarations.topic_tables import FOLDER, load_lake_catalog
from include.settings import Settings

DOCS = """
### Checks stored records against the events in the log

Every stored record carries the number of events folded into it, and up to which offset. The check replays exactly those events
from the log and compares the result with the record: in the lake's table and in the stores of all query nodes, owners and
standbys. It also finds missing keys, surplus keys, and records that lag behind.

It runs

* **after each compaction, promotion and rollback**, on the keys with events since the last check that passed (incremental), or, if
  the read model declares no merge, on a sample of the keys (a different one each time); it counts all of them. After a compaction,
  **no run is started** if nothing is new, and within nine times the duration of the last check after a compaction: the task `check_due_<model>` of
  the DAG `compaction` is then skipped, and says so;
* **every day at 03:00 UTC**, on all keys;
* of an event table **after each append, and every day**: the number of its rows, and that each event of the log is one row with the same
  values. After an append, rows that were compared before are compared by their digest; every day, all rows are compared with the log;
* **manually**: press **Trigger** and choose what to check.

A check of all keys, or of a sample, reads the events from the topic's event table as far as it is proved against the log, and the others from
the log. **From the log** reads all of them there.

| task | meaning | what to do |
|---|---|---|
| failed | records differ from the log; a retry would fail again | open the task's **Report**: it names the keys, with stored and replayed values. `docs/quality.md` |
| up for retry | Kafka, the schema registry or a query node did not respond | `./foldlake status` shows which |
| skipped | nothing to check, or the read model cannot be checked | the task's log names the reason |

A failed check is posted to the webhook `FOLDLAKE_ALERT_WEBHOOK_URL`, if set.
"""

SETTINGS = Settings()
CATALOG = load_lake_catalog(SETTINGS)
MODELS, EVENT_TABLES, OF_TOPICS = CATALOG.models, CATALOG.declared, CATALOG.of_topics
# The assets of event tables: those of topics have one together.
APPENDED = (*EVENT_TABLES, *((FOLDER,) if OF_TOPICS else ()))
FORM = {
    "read_model": Param(
        next(iter(MODELS)),
        enum=[*MODELS, *EVENT_TABLES, *OF_TOPICS],
        values_display=read_model_labels(SETTINGS, MODELS),
        title="Read model or event table",
        description="What to check. Mode and stores concern read models only.",
    ),
    "mode": Param(
        "full",
        enum=["full", "incremental", "sample"],
        title="Mode",
        description="full: every key. incremental: keys with events since the last check that passed, and the number of all keys. "
        "sample: about FOLDLAKE_QUALITY_SAMPLE_KEYS keys, and the number of all keys.",
    ),
    "stores": Param(
        ["lake", "nodes"],
        type="array",
        items={"type": "string", "enum": ["lake", "nodes", "changelog", "staging"]},
        examples=["lake", "nodes", "changelog", "staging"],
        minItems=1,
        title="Stores",
        description="lake: the analysts' table. nodes: the store of each query node. changelog, staging: those of a version being built.",
    ),
    "from_log": Param(
        False,  # noqa: FBT003 - the form's default
        type="boolean",
        title="From the log",
        description="Read all events from the log, also those that were proved to be in an event table.",
    ),
}

OF_EVENT_TABLES: dict[str, Any] = {
    "pool": QUALITY_POOL,
    "weight_rule": RequestedFirst(),
    "retries": 2,
    "retry_delay": timedelta(seconds=30),
    "execution_timeout": timedelta(hours=2),
}

with DAG(
    dag_id=QUALITY_DAG,
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("0 3 * * *", timezone="UTC"),
        assets=AssetAny(
            *(Asset(check_due_asset(name)) for name in MODELS),
            *(Asset(lake_asset(name)) for name in APPENDED),
        ),
    ),
    description="Checks lake and query nodes against the events in the log",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    **dag_arguments("quality", "spark"),
):
    for name in MODELS:
        lake_task(
            f"check_{name}",
            "quality_check",
            [],
            operator_class=CheckStores,
            read_model=name,
            pool=QUALITY_POOL,
            retries=2,
            retry_delay=timedelta(seconds=30),
            execution_timeout=timedelta(hours=6),
            outlets=[Asset(quality_asset(name))],
            doc_md=f"Checks the read model {name}. Skipped when the run is for another one.",
        )
    for name, table in EVENT_TABLES.items():
        CheckEventTables(
            task_id=f"check_{name}",
            tables=(table,),
            group=name,
            **OF_EVENT_TABLES,
            outlets=[Asset(quality_asset(name))],
            doc_md=f"Checks the event table {name}. Skipped when the run is for another one.",
        )
    if OF_TOPICS:
        CheckEventTables(
            task_id=f"check_{FOLDER}",
            tables=tuple(OF_TOPICS.values()),
            group=FOLDER,
            **OF_EVENT_TABLES,
            outlets=[Asset(quality_asset(FOLDER))],
            doc_md="Checks the event tables of the topics. Skipped when the run is for another table.",
        )
