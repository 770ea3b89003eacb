"""The stage `approve`: waits for approval of the promotion."""

from datetime import timedelta

from include.rebuild.stage import VERSION, Approval, PlanStage, PlanStart


def _is_requested(start: PlanStart) -> bool:
    return start.request.approve


APPROVE = PlanStage(
    "approve",
    Approval(
        subject=f"Promote v{VERSION} of {{form[read_model]}}? {{form[reason]}}",
        body="Built with fold revision {results[register_candidate][fold_revision]} and verified:\n\n{results[hydrate]}",
        timeout=timedelta(days=7),
    ),
    description="shows the check's results and waits up to 7 days for approval; passes at once when the form requests none",
    on_failure="it was rejected, or not answered in time: the candidate is abandoned",
    next_try="asks again",
    timeout=None,
    is_needed=_is_requested,
)
