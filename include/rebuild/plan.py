"""The plans of a rebuild and a rollback: their stages in order. No other place defines the order.

Airflow's DAGs, the command line's progress and the tables of the documentation are derived from these lists. To add a stage,
add it to a module of `stages/`, and an entry here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from include.rebuild.request import RebuildRequest
from include.rebuild.stage import PlanStage
from include.rebuild.stages.build import BUILD_STAGING, CATCH_UP, COMPARE, VERIFY
from include.rebuild.stages.promotion import APPROVE, PROMOTE, PROMOTE_LAKE
from include.rebuild.stages.registration import (
    ABANDON,
    READ_SOURCES,
    REGISTER_CANDIDATE,
    register_versions_of,
)
from include.rebuild.stages.rollback import CHOOSE_VERSION, ROLL_BACK
from include.rebuild.stages.serve import HAND_OVER, HYDRATE
from include.versions.version_record import ReadModelVersions


@dataclass(frozen=True)
class Plan:
    """Steps in order. A step starts when the one before has succeeded; the stages of one step may run concurrently.

    commit: the stage that takes effect for readers. clean_up: the stage that runs once all stages up to `commit` have
        ended, in whatever state, and removes what was not committed.
    """

    name: str
    steps: tuple[tuple[PlanStage, ...], ...]
    commit: PlanStage
    clean_up: PlanStage | None = None

    @property
    def stages(self) -> tuple[PlanStage, ...]:
        """The stages in order, without `clean_up`."""
        return tuple(stage for step in self.steps for stage in step)

    @property
    def all_stages(self) -> tuple[PlanStage, ...]:
        """The stages in order, with `clean_up` at the end."""
        return self.stages if self.clean_up is None else (*self.stages, self.clean_up)

    @property
    def before_clean_up(self) -> tuple[PlanStage, ...]:
        """The stages up to `commit`."""
        return self.stages[: self.stages.index(self.commit) + 1]


def rebuild_plan(read_models: tuple[str, ...] = (), topic: str = "") -> Plan:
    """Return the plan of a rebuild of the read model in its form, or of all these, which fold a new version of a topic.

    Each stage of one version is there once for each read model. Registration, approval and promotion concern all versions at once.
    """

    def each(*stages: PlanStage) -> tuple[PlanStage, ...]:
        if not topic:
            return stages
        return tuple(
            replace(stage, name=f"{name}.{stage.name}", read_models=(name,))
            for name in read_models
            for stage in stages
        )

    def together(stage: PlanStage) -> PlanStage:
        return replace(stage, read_models=read_models)

    promote = together(PROMOTE)
    registered = (
        ((together(register_versions_of(topic)),), (together(READ_SOURCES),))
        if topic
        else ((REGISTER_CANDIDATE,),)
    )
    return Plan(
        f"rebuild of {topic}" if topic else "rebuild",
        steps=(
            *registered,
            each(CATCH_UP, BUILD_STAGING),
            each(VERIFY),
            each(COMPARE),
            each(HAND_OVER),
            each(HYDRATE),
            (together(APPROVE),),
            (promote,),
            each(PROMOTE_LAKE),
        ),
        commit=promote,
        clean_up=together(ABANDON),
    )


REBUILD = rebuild_plan()
ROLLBACK = Plan("rollback", steps=((CHOOSE_VERSION,), (ROLL_BACK,), (PROMOTE_LAKE,)), commit=ROLL_BACK)


@dataclass(frozen=True)
class PlannedStage:
    """A stage of one rebuild or rollback, and the number of the version that it works on; None for one of several read models."""

    stage: PlanStage
    version: int | None


def planned_stages(
    plan: Plan, request: RebuildRequest, records: Mapping[str, ReadModelVersions]
) -> tuple[PlannedStage, ...]:
    """Return the stages of a requested rebuild, in order, for display. records: those of its read models, before it is registered."""
    may_ask = request.approve or request.thresholds.are_set
    numbers = {name: max(v.number for v in records[name].versions) + 1 for name in request.read_models}
    planned = []
    for stage in _dry_run_stages(plan) if request.dry_run else plan.stages:
        names = stage.read_models or request.read_models
        if stage.name != APPROVE.name or may_ask:
            planned.append(PlannedStage(stage, numbers[names[0]] if len(names) == 1 else None))
    return tuple(planned)


def _dry_run_stages(plan: Plan) -> tuple[PlanStage, ...]:
    """Return the stages of a dry run: those up to the last comparison, and the clean-up."""
    names = [stage.name.rpartition(".")[2] for stage in plan.stages]
    built = plan.stages[: len(names) - names[::-1].index(COMPARE.name)]
    return built if plan.clean_up is None else (*built, plan.clean_up)


def rollback_plan(version: int) -> tuple[PlannedStage, ...]:
    """Return the stages of a rollback to a version, in order."""
    return tuple(PlannedStage(stage, version) for stage in ROLLBACK.stages)


def failure_table(plan: Plan) -> str:
    """Return the plan as a table in Markdown: what each stage does, and what to do when it fails."""
    rows = ((f"`{stage.name}`", stage.description, stage.on_failure) for stage in plan.all_stages)
    return _table(("task", "what it does", "when it fails"), rows)


def stage_table(plan: Plan) -> str:
    """Return the plan as a table in Markdown: what each stage does, what to do when it fails, and what happens after it is killed."""
    rows = (
        (f"`{stage.name}`", stage.description, stage.on_failure, stage.leaves, stage.next_try)
        for stage in plan.all_stages
    )
    return _table(("task", "what it does", "when it fails", "a killed try leaves", "the next try"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
