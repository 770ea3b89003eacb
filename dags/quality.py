"""The DAG that checks whether stored records are what the events fold to."""

from datetime import timedelta

from airflow.sdk import DAG, Asset, AssetAny, AssetOrTimeSchedule, CronTriggerTimetable, Param

from include.airflow.names import QUALITY_DAG, QUALITY_POOL, dag_arguments, lake_asset, quality_asset
from include.airflow.quality_operators import CheckStores
from include.airflow.spark_tasks import lake_task
from include.declarations.read_model import load_read_models
from include.settings import Settings

DOCS = """
### Checks whether the numbers are right

Every stored record says how many events, up to which offset, are in it. The check folds exactly those events again, from
the log, and compares: the lake's table and the stores of all query nodes, owners and standbys. It also looks for keys that
are missing, keys that should not be, and records that have not got as far as they must.

It runs

* **after each compaction, promotion and rollback**, over a sample of the keys (another one each time), counting all of them.
  After a compaction it is skipped while checks rest: nine times as long as the last one took;
* **every day at 03:00 UTC**, over all keys;
* **by hand**: press Trigger, and say what to check.

A task that failed has found something: its button **Report** opens a page that names the keys, with stored and replayed
values. `docs/quality.md` says what to do. It is not tried again, for it would find the same. A task that is up for retry
could not ask: Kafka, the schema registry or the nodes did not answer. A task that was skipped says why in its log.

A failed check posts to the webhook of `FOLDLAKE_ALERT_WEBHOOK_URL`, where one is set.
"""

MODELS = load_read_models(Settings().read_models_dir)
FORM = {
    "read_model": Param(
        next(iter(MODELS)), enum=list(MODELS), title="Read model", description="What is checked."
    ),
    "mode": Param(
        "full",
        enum=["full", "sample"],
        title="How much",
        description="full: every key. sample: about FOLDLAKE_QUALITY_SAMPLE_KEYS of them; all are counted.",
    ),
    "stores": Param(
        ["lake", "nodes"],
        type="array",
        items={"type": "string", "enum": ["lake", "nodes", "changelog", "staging"]},
        examples=["lake", "nodes", "changelog", "staging"],
        minItems=1,
        title="Stores",
        description="lake: the analysts' table. nodes: what each query node holds. changelog, staging: of a version being built.",
    ),
}

with DAG(
    dag_id=QUALITY_DAG,
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("0 3 * * *", timezone="UTC"),
        assets=AssetAny(*(Asset(lake_asset(model)) for model in MODELS)),
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
            "quality",
            [],
            operator_class=CheckStores,
            read_model=name,
            pool=QUALITY_POOL,
            retries=2,
            retry_delay=timedelta(seconds=30),
            execution_timeout=timedelta(hours=6),
            outlets=[Asset(quality_asset(name))],
            doc_md=f"Checks the read model {name}. Skipped where the run is about another.",
        )
