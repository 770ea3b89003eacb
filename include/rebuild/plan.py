"""The plans of a rebuild and a rollback: their stages in order. No other place defines the order.

Airflow's DAGs, the command line's progress and the tables of the documentation are derived from these lists. To add a stage,
add a module to `stages/` and an entry here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from include.rebuild.request import RebuildRequest
from include.rebuild.stage import PlanStage, PlanStart
from include.rebuild.stages.abandon import ABANDON
from include.rebuild.stages.approve import APPROVE
from include.rebuild.stages.build_staging import BUILD_STAGING
from include.rebuild.stages.catch_up import CATCH_UP
from include.rebuild.stages.compare import COMPARE
from include.rebuild.stages.hand_over import HAND_OVER
from include.rebuild.stages.hydrate import HYDRATE
from include.rebuild.stages.promote import PROMOTE
from include.rebuild.stages.promote_lake import PROMOTE_LAKE
from include.rebuild.stages.register_candidate import REGISTER_CANDIDATE
from include.rebuild.stages.roll_back import CHOOSE_VERSION, ROLL_BACK
from include.rebuild.stages.verify import VERIFY
from include.versions.version_record import ReadModelVersions, Stage


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


REBUILD = Plan(
    "rebuild",
    steps=(
        (REGISTER_CANDIDATE,),
        (CATCH_UP, BUILD_STAGING),
        (VERIFY,),
        (COMPARE,),
        (HAND_OVER,),
        (HYDRATE,),
        (APPROVE,),
        (PROMOTE,),
        (PROMOTE_LAKE,),
    ),
    commit=PROMOTE,
    clean_up=ABANDON,
)
ROLLBACK = Plan("rollback", steps=((CHOOSE_VERSION,), (ROLL_BACK,), (PROMOTE_LAKE,)), commit=ROLL_BACK)


@dataclass(frozen=True)
class PlannedStage:
    """A stage of one rebuild or rollback, and the number of the version that it works on; None for one of several read models."""

    stage: PlanStage
    version: int | None


def rebuild_plan(
    record: ReadModelVersions, request: RebuildRequest, run_id: str = ""
) -> tuple[PlannedStage, ...]:
    """Return the stages of a rebuild, in order, for a read model whose versions are those of `record`.

    run_id: the rebuild's run. A retried run has the same stages, on the version that it registered: each stage detects
        completed work. A run whose version was abandoned has one stage, which removes the leftovers.
    """
    own = next((v for v in record.versions if run_id and v.run_id == run_id), None)
    number = max(v.number for v in record.versions) + 1 if own is None else own.number
    start = PlanStart(request, number)
    if own is not None and own.stage is Stage.ABANDONED:
        return (PlannedStage(ABANDON, number),)
    stages = dry_run_stages(REBUILD, COMPARE) if request.dry_run else REBUILD.stages
    return tuple(PlannedStage(stage, number) for stage in stages if stage.is_needed(start))


def dry_run_stages(plan: Plan, last: PlanStage) -> tuple[PlanStage, ...]:
    """Return the stages of a dry run: those up to the last comparison, and the clean-up."""
    built = plan.stages[: plan.stages.index(last) + 1]
    return built if plan.clean_up is None else (*built, plan.clean_up)


def rollback_plan(version: int) -> tuple[PlannedStage, ...]:
    """Return the stages of a rollback to a version, in order."""
    return tuple(PlannedStage(stage, version) for stage in ROLLBACK.stages)


def failure_table(plan: Plan) -> str:
    """Return the plan as a table in Markdown: what each stage does, and what to do when it fails."""
    rows = ((f"`{stage.name}`", stage.description, stage.on_failure) for stage in plan.all_stages)
    return _table(("task", "what it does", "when it fails"), rows)


def kill_table(plan: Plan) -> str:
    """Return the plan as a table in Markdown: what each stage does, and what happens after it is killed."""
    rows = ((f"`{stage.name}`", stage.description, stage.leaves, stage.next_try) for stage in plan.all_stages)
    return _table(("task", "what it does", "a killed try leaves", "the next try"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
