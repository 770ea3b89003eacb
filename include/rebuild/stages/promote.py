"""The stage `promote`: makes the candidate live."""

from include.rebuild.stage import PROMOTION, Action, PlanStage, StageRun

GRACE_H = "{results[register_candidate][grace_h]}"


def promote(run: StageRun) -> int | None:
    """Make the version live; returns the number of the version that it replaced."""
    from include.rebuild.promotion import promote_version, recheck_candidate

    compared_with = recheck_candidate(run.settings, run.read_model, run.version)
    grace_h = float(run.text(GRACE_H))
    replaced = promote_version(run.settings, run.read_model, run.version, grace_h, compared_with)
    return None if replaced is None else replaced.number


PROMOTE = PlanStage(
    "promote",
    Action(promote),
    description="waits at the gate until the driver folds N+1 and every node has all events that N contained at the start; then appends "
    "one record: N+1 is `live`, N is `previous`",
    on_failure="the message names what N+1 lacks; or another version was promoted in the meantime: `./foldlake versions` shows it",
    leaves="the old record or the new one",
    next_try="finds that N+1 is live",
    group=PROMOTION,
)
