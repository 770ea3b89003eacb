"""The stage `hand_over`: the stream driver continues from the version's checkpoint."""

from datetime import timedelta

from include.rebuild.stage import Action, PlanStage, StageRun


def hand_over(run: StageRun) -> None:
    """Make the version a candidate and wait until the stream driver folds it in real time."""
    from include.rebuild.handover import hand_over_version

    hand_over_version(run.settings, run.read_model, run.version)


HAND_OVER = PlanStage(
    "hand_over",
    Action(hand_over),
    description="makes N+1 a `candidate` and waits until the stream driver folds it in real time",
    on_failure="the stream driver is down, or refuses the candidate: `./foldlake status` shows which",
    leaves="a candidate",
    next_try="continues to wait",
    timeout=timedelta(hours=2),
)
