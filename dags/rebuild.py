"""The DAG that builds a new version of a read model beside the live one, proves it, and promotes it."""

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, task

from include.airflow.names import REBUILD_DAG, REBUILD_POOL, dag_arguments
from include.airflow.quality_operators import VerifyVersion
from include.airflow.rebuild_operators import ApprovalIfAsked, RetireAfterGrace
from include.airflow.spark_tasks import lake_task, promote_lake_task, stream_task
from include.declarations.read_model import load_read_models
from include.settings import Settings

DOCS = """
### Builds a new version of a read model and puts it in the live one's place

**Press Trigger**, say which read model and why. The new version is folded from the first event, beside the live one, which
answers lookups all the while. It is promoted only when it is proved: every key's state in the changelog and in a second,
independent fold equals what the log says. The version that was live is kept for a rollback during the grace time.

| task | what it does | when it fails |
|---|---|---|
| `register_candidate` | enters version N+1 in the registry | another rebuild is at work: wait for it |
| `catch_up` | folds N+1 from the first event, in batches | goes on from its checkpoint at the next try |
| `build_staging` | folds the same events once more, in one batch | begins again |
| `verify` | compares both with the log | the report names the keys |
| `hand_over` | the stream driver folds N+1 in real time | is the stream running? |
| `hydrate` | every query node loads N+1 | are the nodes up? |
| `approve` | waits for your yes, where the form asks for it | No: the candidate is abandoned |
| `promote` | one record: N+1 is live | somebody promoted another version meanwhile |
| `promote_lake` | one commit: the lake's table is N+1 | the next compaction does it |
| `retire` | after the grace time, removes the old version | the DAG `retirement` does it |
| `abandon` | runs when anything before the promotion failed: removes what N+1 left | the DAG `retirement` does it |

Nobody who reads sees anything but the old or the new version, whole, wherever this is killed. See `docs/rebuild.md`.
"""

MODELS = load_read_models(Settings().read_models_dir)
FORM = {
    "read_model": Param(
        next(iter(MODELS)), enum=list(MODELS), title="Read model", description="What is built anew."
    ),
    "reason": Param(
        type="string",
        minLength=1,
        maxLength=500,
        title="Reason",
        description="Why: it stays with the version, and is this run's note.",
    ),
    "fold_revision": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Fold revision",
        description="Of the read model's module. Empty: the newest.",
    ),
    "approve": Param(
        True,  # noqa: FBT003 - the form's default
        type="boolean",
        title="Approve by hand",
        description="On: the proved candidate waits for your yes (task approve, under Required Actions). Off: it is promoted.",
    ),
    "grace_hours": Param(
        Settings().rebuild.grace_h,
        type="number",
        minimum=0,
        maximum=24 * 365,
        title="Grace time in hours",
        description="How long the version that is replaced is kept for a rollback.",
    ),
}
MODEL = "{{ params.read_model }}"
VERSION = "{{ ti.xcom_pull(task_ids='register_candidate')['version'] }}"
JOB = ["--read-model", MODEL, "--version", VERSION]
CHECK = "rebuild-{{ params.read_model }}-v" + VERSION
SHORT = timedelta(minutes=10)
LONG: dict[str, Any] = {"retries": 3, "execution_timeout": timedelta(hours=12), "pool": REBUILD_POOL}

with DAG(
    dag_id=REBUILD_DAG,
    schedule=None,
    description="Builds a new version of a read model, proves it and promotes it",
    doc_md=DOCS,
    params=FORM,
    is_paused_upon_creation=False,
    # A second one of the same read model shall be refused by the registry, with a reason, not queue up here.
    **dag_arguments("rebuild", "spark", max_active_runs=16),
):

    @task(retries=3, execution_timeout=SHORT)
    def register_candidate(
        params: dict[str, Any] | None = None,
        dag_run: Any = None,  # noqa: ANN401 - Airflow's
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Check the form, and enter the new version in the version registry."""
        from include.airflow.rebuild_actions import register

        return register(dag_run.conf or {}, params or {}, run_id or "")

    @task(retries=3, execution_timeout=timedelta(hours=2))
    def hand_over(read_model: str, number: str) -> None:
        """Give the version to the stream driver, and wait until it folds it in real time."""
        from include.airflow.rebuild_actions import hand_over as action

        action(read_model, int(number))

    @task(retries=3, execution_timeout=timedelta(hours=2))
    def hydrate(read_model: str, number: str, check: str) -> str:
        """Wait until every query node has loaded the version; return the proof for the approval."""
        from include.airflow.rebuild_actions import load_on_nodes

        return load_on_nodes(read_model, int(number), check)

    @task(retries=3, execution_timeout=SHORT)
    def promote(read_model: str, number: str, grace_h: str) -> int | None:
        """Make the version live; return the number of the one that it replaces."""
        from include.airflow.rebuild_actions import promote as action

        return action(read_model, int(number), float(grace_h))

    @task(trigger_rule="all_done", retries=3, execution_timeout=SHORT)
    def abandon(read_model: str, run_id: str | None = None) -> None:
        """Give up what is not promoted and remove what it leaves; skipped where all is well."""
        from include.airflow.rebuild_actions import abandon as action

        action(read_model, run_id or "")

    registered = register_candidate()
    caught_up = stream_task("catch_up", "catch_up", JOB, **LONG)
    staged = lake_task("build_staging", "build_staging", JOB, **LONG)
    verified = lake_task(
        "verify",
        "quality",
        [*JOB, "--stores", "changelog,staging", "--mode", "full", "--run-id", CHECK],
        operator_class=VerifyVersion,
        check=CHECK,
        **{**LONG, "retries": 2},
    )
    handed_over = hand_over(MODEL, VERSION)
    hydrated = hydrate(MODEL, VERSION, CHECK)
    approved = ApprovalIfAsked(
        task_id="approve",
        subject="Promote v" + VERSION + " of {{ params.read_model }}? {{ params.reason }}",
        body="Built with fold revision {{ ti.xcom_pull(task_ids='register_candidate')['fold_revision'] }}, and proved:\n\n"
        "{{ ti.xcom_pull(task_ids='hydrate') }}",
        response_timeout=timedelta(days=7),
        retries=3,
    )
    promoted = promote(MODEL, VERSION, "{{ ti.xcom_pull(task_ids='register_candidate')['grace_h'] }}")
    lake_promoted = promote_lake_task()
    retired = RetireAfterGrace(
        task_id="retire",
        read_model=MODEL,
        version="{{ ti.xcom_pull(task_ids='promote') or '' }}",
        retries=3,
    )
    before = [registered, caught_up, staged, verified, handed_over, hydrated, approved, promoted]

    registered >> [caught_up, staged] >> verified >> handed_over >> hydrated >> approved >> promoted
    promoted >> lake_promoted >> retired
    before >> abandon(MODEL)
