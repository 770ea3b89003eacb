"""The stage `promote`: makes the candidate live."""

from include.rebuild.stage import Action, PlanStage, StageRun

GRACE_H = "{results[register_candidate][grace_h]}"


def promote(run: StageRun) -> int | None:
    """Make the version live; returns the number of the version that it replaced."""
    from include.rebuild.promotion import promote_version, recheck_candidate

    recheck_candidate(run.settings, run.read_model, run.version)
    replaced = promote_version(run.settings, run.read_model, run.version, float(run.text(GRACE_H)))
    return None if replaced is None else replaced.number


PROMOTE = PlanStage(
    "promote",
    Action(promote),
    description="checks once more that the driver folds N+1 and the nodes hold it, then appends one record: N+1 is `live`, N is "
    "`previous`",
    on_failure="another version was promoted in the meantime: `./foldlake versions` shows it",
    leaves="the old record or the new one",
    next_try="finds that N+1 is live",
)
