"""The stage `approve`: waits for approval of the promotion."""

from datetime import timedelta

from include.rebuild.stage import PROMOTION, VERSION, Approval, PlanStage, PlanStart, StageRun
from include.rebuild.stages.compare import COMPARISON_ID


def exceeded_thresholds(run: StageRun) -> tuple[str, ...]:
    """Return a sentence for each threshold of the form that the comparison of the run's version exceeds."""
    from include.rebuild.comparison import report
    from include.rebuild.comparison.thresholds import exceeded, thresholds_of

    thresholds = thresholds_of(run.form)
    if not thresholds.are_set:
        return ()
    comparison_id = run.text(COMPARISON_ID)
    found = report.read(run.settings.home, comparison_id)
    if found is None:
        return (
            f"There is no comparison {comparison_id}, so that the thresholds of {run.read_model} cannot be evaluated.",
        )
    return exceeded(thresholds, found)


def _is_possible(start: PlanStart) -> bool:
    return start.request.approve or start.request.thresholds.are_set


APPROVE = PlanStage(
    "approve",
    Approval(
        subject=f"Promote v{VERSION} of {{form[read_model]}}? {{form[reason]}}",
        body="Built with fold revision {results[register_candidate][fold_revision]}, verified, and compared with the live version.\n\n"
        "{results[hydrate]}",
        timeout=timedelta(days=7),
        exceeded=exceeded_thresholds,
    ),
    description="shows what changes and the check's results, and waits up to 7 days for approval; passes at once when the form requests "
    "none and no threshold is exceeded",
    on_failure="it was rejected, or not answered in time: the candidate is abandoned",
    next_try="waits for approval again",
    timeout=None,
    is_needed=_is_possible,
    group=PROMOTION,
)
