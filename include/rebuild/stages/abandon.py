"""The stage `abandon`: removes the version of a rebuild that was not promoted."""

from include.rebuild.errors import NothingToDoError
from include.rebuild.stage import Action, PlanStage, StageRun


def abandon(run: StageRun) -> None:
    """Abandon the run's version and remove its leftovers; raises NothingToDoError when it was promoted or never registered."""
    from include.rebuild.retirement import abandon_run

    if abandon_run(run.settings, run.read_model, run.run_id) is None:
        raise NothingToDoError(f"Run {run.run_id} has no version to abandon.")


ABANDON = PlanStage(
    "abandon",
    Action(abandon),
    description="runs when a stage up to `promote` failed or was rejected, and after a dry run: N+1 becomes `abandoned`, and what it leaves is removed",
    on_failure="the DAG `retirement` does it",
    leaves="some of the version's files",
    next_try="removes the rest. So does the DAG `retirement`",
)
