"""The stage `hand_over`: the stream driver continues from the version's checkpoint."""

from datetime import timedelta

from include.rebuild.errors import NothingToDoError
from include.rebuild.stage import SERVE, Action, PlanStage, StageRun


def hand_over(run: StageRun) -> None:
    """Make the version a candidate and wait until the stream driver folds it in real time; raises NothingToDoError in a dry run."""
    from include.rebuild.handover import hand_over_version

    if run.form.get("dry_run"):
        raise NothingToDoError("This is a dry run: the version was built and compared, and is abandoned now.")
    hand_over_version(run.settings, run.read_model, run.version)


HAND_OVER = PlanStage(
    "hand_over",
    Action(hand_over),
    description="makes N+1 a `candidate` and waits until the stream driver folds it in real time",
    on_failure="the stream driver is down, or refuses the candidate: `./foldlake status` shows which",
    leaves="a candidate",
    next_try="continues to wait",
    timeout=timedelta(hours=2),
    group=SERVE,
)
