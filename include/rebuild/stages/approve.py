"""The stage `approve`: a person says yes."""

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
    description="shows the check's results and waits for a yes, up to 7 days; passes at once where the form asks for none",
    on_failure="the answer was no, or none came: the candidate is abandoned",
    next_try="asks again",
    timeout=None,
    is_needed=_is_requested,
)
