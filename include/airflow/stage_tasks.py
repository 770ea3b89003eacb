"""Turns a plan into Airflow tasks, one for each stage, in the plan's order, and has the fields that the forms of rebuilds share."""

from itertools import pairwise
from typing import Any

from airflow.sdk import BaseOperator, Param, TaskGroup

from include.airflow.rebuild_operators import (
    ActionOperator,
    CompareVersions,
    OptionalApproval,
    StageJob,
    VerifyVersion,
)
from include.airflow.spark_tasks import announce_lake_change, lake_task, stream_task
from include.rebuild.comparison.thresholds import MAX_PERCENT
from include.rebuild.plan import Plan
from include.rebuild.request import MAX_GRACE_H, MAX_REASON_CHARACTERS
from include.rebuild.stage import Action, Approval, Engine, PlanStage, Report, SparkJob

JOB_OPERATORS = {None: StageJob, Report.CHECK: VerifyVersion, Report.COMPARISON: CompareVersions}


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
            description="For each numeric field: the sum of all keys' changes, without their signs. A larger sum requires approval. "
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
        "task_id": stage.name,
        "read_models": stage.read_models,
        "retries": stage.retries,
        "execution_timeout": stage.timeout,
        "doc_md": f"{stage.name}: {stage.description}.\n\nWhen it fails: {stage.on_failure}.",
    }
    if stage.slot is not None:
        operator |= {"pool": stage.slot.value, "priority_weight": stage.priority}
    match stage.work:
        case Action() as action:
            return ActionOperator(action=action, **operator)
        case Approval() as approval:
            return OptionalApproval(approval=approval, **operator)
        case SparkJob() as job:
            make = stream_task if job.engine is Engine.STREAM else lake_task
            if job.changes_lake:
                operator |= announce_lake_change(*stage.read_models)
            return make(job=job.job, operator_class=JOB_OPERATORS[job.report], stage_job=job, **operator)
