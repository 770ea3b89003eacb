"""The DAGs that build everything that folds a new version of a topic, and promote it together: one for each topic with versions."""

from airflow.sdk import DAG

from include.airflow.names import dag_arguments, topic_rebuild_dag
from include.airflow.stage_tasks import plan_tasks, promotion_fields, reason_field
from include.declarations.load import load_catalog
from include.rebuild.plan import failure_table, rebuild_plan
from include.rebuild.request import rebuilt_topics
from include.settings import Settings

DOCS = """
### Builds everything that folds the topic {topic} from its new version, and promotes it together

A route to `{topic}` has a new version, which writes `{new_topic}`. Press **Trigger** and state the reason. A new version of each of
these read models folds `{new_topic}` from its first event, while the live ones keep answering lookups: {read_models}. They are promoted
only if each is proved, all in one transaction. The replaced versions are kept for a rollback during the grace time; the DAG
`retirement` retires them.

**To stop it**, mark the run as **failed**: its versions are abandoned within 30 seconds, and what they leave is removed. A request that is
refused skips all tasks, and the run's note says why.

{table}

If this run is killed at any point, readers get the old versions or the new ones, never a mix. See `docs/routes.md`.
"""

settings = Settings()
CATALOG = load_catalog(settings.declaration_folders)
FORM = {
    "reason": reason_field("Stored with the versions and as this run's note."),
    **promotion_fields(settings.rebuild.grace_h),
}

for topic in rebuilt_topics(CATALOG).values():
    plan = rebuild_plan(topic.read_models, topic.name)
    with DAG(
        dag_id=topic_rebuild_dag(topic.name),
        schedule=None,
        description=f"Builds what folds {topic.name} from its new version, verifies it and promotes it together",
        doc_md=DOCS.format(
            topic=topic.name,
            new_topic=topic.newest,
            read_models=", ".join(topic.read_models),
            table=failure_table(plan),
        ),
        params=FORM,
        is_paused_upon_creation=False,
        # The registry rejects a second rebuild of the same read model with a reason: it must not wait in Airflow's queue.
        **dag_arguments("rebuild", "spark", max_active_runs=16),
    ):
        plan_tasks(plan)
