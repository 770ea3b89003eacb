"""The plan of a topic's rebuild: the stages of a rebuild for each read model behind it, and what concerns all of them."""

from collections.abc import Sequence

from include.rebuild.plan import Plan, PlannedStage, dry_run_stages
from include.rebuild.stage import PlanStage
from include.rebuild.stages.build_staging import BUILD_STAGING
from include.rebuild.stages.catch_up import CATCH_UP
from include.rebuild.stages.compare import COMPARE
from include.rebuild.stages.hand_over import HAND_OVER
from include.rebuild.stages.hydrate import HYDRATE
from include.rebuild.stages.promote_lake import PROMOTE_LAKE
from include.rebuild.stages.verify import VERIFY
from include.rebuild.topic_versions.binding import for_read_model, task_id
from include.rebuild.topic_versions.request import TopicRequest
from include.rebuild.topic_versions.stages import (
    PROMOTE_TOGETHER,
    READ_SOURCES,
    abandon_together,
    approve_together,
    register_versions,
)


def topic_plan(topic: str, read_models: Sequence[str]) -> Plan:
    """Return the plan for a topic and the read models that fold it."""

    def each(*stages: PlanStage) -> tuple[PlanStage, ...]:
        return tuple(for_read_model(stage, name) for name in read_models for stage in stages)

    return Plan(
        f"rebuild of {topic}",
        steps=(
            (register_versions(topic),),
            (READ_SOURCES,),
            each(CATCH_UP, BUILD_STAGING),
            each(VERIFY),
            each(COMPARE),
            each(HAND_OVER),
            each(HYDRATE),
            (approve_together(topic, read_models),),
            (PROMOTE_TOGETHER,),
            each(PROMOTE_LAKE),
        ),
        commit=PROMOTE_TOGETHER,
        clean_up=abandon_together(read_models),
    )


def planned_stages(request: TopicRequest) -> tuple[PlannedStage, ...]:
    """Return the stages of a rebuild in order, for display; a stage works on several versions at once."""
    plan = topic_plan(request.topic, request.read_models)
    if request.dry_run:
        last = task_id(request.read_models[-1], COMPARE)
        stages = dry_run_stages(plan, next(stage for stage in plan.stages if stage.name == last))
    else:
        stages = plan.stages
    may_ask = request.approve or request.thresholds.are_set
    return tuple(PlannedStage(stage, None) for stage in stages if stage.name != "approve" or may_ask)
