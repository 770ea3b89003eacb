"""Turns a plan into Airflow tasks, one for each stage, in the plan's order, and has the fields that the forms of rebuilds share."""

from itertools import pairwise
from typing import Any

from airflow.sdk import BaseOperator, Param, TaskGroup

from include.airflow.quality_operators import VerifyVersion
from include.airflow.rebuild_operators import ActionOperator, CompareVersions, OptionalApproval
from include.airflow.spark_tasks import announce_lake_change, lake_task, stream_task
from include.rebuild.comparison.thresholds import MAX_PERCENT
from include.rebuild.plan import Plan
from include.rebuild.request import MAX_GRACE_H, MAX_REASON_CHARACTERS
from include.rebuild.stage import Action, Approval, Engine, PlanStage, SparkJob


def reason_field(description: str) -> Param:
    """Return the field for the reason of a request, which is required."""
    return Param(
        type="string",
        minLength=1,
        maxLength=MAX_REASON_CHARACTERS,
        title="Reason",
        description=description,
    )


def promotion_fields(default_grace_h: float) -> dict[str, Param]:
    """Return the fields of a rebuild's form that concern its promotion."""
    return {
        "approve": Param(
            True,  # noqa: FBT003 - the form's default
            type="boolean",
            title="Approve manually",
            description="On: what is verified waits for approval (task approve, under Required Actions). Off: it is promoted, unless it "
            "exceeds one of these thresholds.",
        ),
        "max_changed_percent": Param(
            None,
            type=["null", "number"],
            minimum=0,
            maximum=MAX_PERCENT,
            title="At most this share of keys may differ, in %",
            description="Keys that change, are new or are gone, relative to all keys. If more differ, approval is required. Empty: no limit.",
        ),
        "max_total_change": Param(
            None,
            type=["null", "number"],
            minimum=0,
            title="At most this change in total",
            description="Of each numeric field: the changes of all keys, added up without their signs. If it is more, approval is required. "
            "Empty: no limit.",
        ),
        "no_negative": Param(
            False,  # noqa: FBT003 - the form's default
            type="boolean",
            title="Require approval for negative values",
            description="On: if a numeric field of a key is below zero, approval is required.",
        ),
        "dry_run": Param(
            False,  # noqa: FBT003 - the form's default
            type="boolean",
            title="Dry run",
            description="On: the version is built, verified and compared, then abandoned. The task compare links the report.",
        ),
        "grace_hours": Param(
            default_grace_h,
            type="number",
            minimum=0,
            maximum=MAX_GRACE_H,
            title="Grace time in hours",
            description="How long a replaced version is kept for a rollback.",
        ),
    }


def plan_tasks(plan: Plan) -> dict[str, BaseOperator]:
    """Create a plan's tasks in the current DAG, and return them by task id."""
    groups: dict[str, TaskGroup] = {}
    tasks = {stage.name: _task_in_group(stage, groups) for stage in plan.stages}
    for before, after in pairwise(plan.steps):
        for stage in before:
            tasks[stage.name] >> [tasks[next_stage.name] for next_stage in after]
    if plan.clean_up is not None:
        clean_up = stage_task(plan.clean_up, trigger_rule="all_done")
        [tasks[stage.name] for stage in plan.before_clean_up] >> clean_up
        tasks[plan.clean_up.name] = clean_up
    return tasks


def _task_in_group(stage: PlanStage, groups: dict[str, TaskGroup]) -> BaseOperator:
    """Return the task of a stage, in the box of its group; its id is the stage's name, whatever the group."""
    if not stage.group:
        return stage_task(stage)
    if stage.group not in groups:
        groups[stage.group] = TaskGroup(stage.group, prefix_group_id=False)
    with groups[stage.group]:
        return stage_task(stage)


def stage_task(stage: PlanStage, **operator: Any) -> BaseOperator:  # noqa: ANN401 - Airflow's
    """Return the task of a stage."""
    operator |= {
        "retries": stage.retries,
        "execution_timeout": stage.timeout,
        "doc_md": f"{stage.name}: {stage.description}.\n\nWhen it fails: {stage.on_failure}.",
    }
    if stage.slot is not None:
        operator |= {"pool": stage.slot.value, "priority_weight": stage.priority}
    match stage.work:
        case Action() as action:
            return ActionOperator(task_id=stage.name, action=action, **operator)
        case Approval() as approval:
            return OptionalApproval(
                task_id=stage.name,
                subject=as_jinja(approval.subject),
                body=as_jinja(approval.body),
                response_timeout=approval.timeout,
                exceeded=approval.exceeded,
                **operator,
            )
        case SparkJob() as job:
            return _spark_task(stage.name, job, operator)


def _spark_task(task_id: str, job: SparkJob, operator: dict[str, Any]) -> BaseOperator:
    make = stream_task if job.engine is Engine.STREAM else lake_task
    if job.check_id:
        operator |= {"operator_class": VerifyVersion, "check": as_jinja(job.check_id)}
    if job.comparison_id:
        operator |= {"operator_class": CompareVersions, "comparison": as_jinja(job.comparison_id)}
    if job.changes_lake:
        operator |= announce_lake_change(job.read_model)
    return make(task_id, job.job, [as_jinja(argument) for argument in job.arguments], **operator)


def as_jinja(template: str) -> str:
    """Return a stage's text, written as for `str.format`, as the Jinja template that Airflow fills in."""
    return template.format(form=_Form(), results=_Results())


class _Expression(str):
    """A Jinja expression: `{x}` renders it, `{x[y]}` renders its item `y`."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> "_Expression":  # noqa: ANN401 - wider than that of str
        return _Expression(f"{self!s}[{key!r}]")

    def __format__(self, _spec: str) -> str:
        return f"{{{{ {self!s} }}}}"


class _Form:
    def __getitem__(self, field: str) -> _Expression:
        return _Expression(f"params.{field}")


class _Results:
    def __getitem__(self, stage: str) -> _Expression:
        return _Expression(f"ti.xcom_pull(task_ids={stage!r})")
