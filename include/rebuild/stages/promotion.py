"""The stages that make versions live: a person approves, the registry's records change, and the lake follows."""

from collections.abc import Sequence
from datetime import timedelta

from include.rebuild.stage import (
    PROMOTION,
    Action,
    Approval,
    Engine,
    PlanStage,
    Question,
    Slot,
    SparkJob,
    StageRun,
)


def _question(run: StageRun) -> Question:
    from include.rebuild.approval import approval_question

    settings, reason = run.settings, str(run.form["reason"])
    return approval_question(
        run.versions, reason, settings.home, settings.lake_root, settings.reports_base_url
    )


def _exceeded(run: StageRun) -> Sequence[str]:
    from include.rebuild.approval import exceeded_thresholds
    from include.rebuild.comparison.thresholds import thresholds_of

    thresholds = thresholds_of(run.form)
    return exceeded_thresholds(run.versions, thresholds, run.settings.home) if thresholds.are_set else ()


APPROVE = PlanStage(
    "approve",
    Approval(_question, _exceeded, timeout=timedelta(days=7)),
    description="shows what changes and the check's results, and waits up to 7 days for approval. Passes at once if neither the form nor a "
    "threshold requires it",
    on_failure="it was rejected, or not answered in time: the candidate is abandoned",
    next_try="waits for approval again",
    timeout=None,
    group=PROMOTION,
)


def _promote(run: StageRun) -> dict[str, int]:
    """Make the versions live; returns the numbers of those that they replaced, by read model."""
    from include.declarations.load import load_catalog
    from include.rebuild.promotion import promote_versions
    from include.rebuild.request import grace_time_h

    grace_h = grace_time_h(run.form, run.settings.rebuild.grace_h)
    numbers = {name: version.number for name, version in run.versions.items()}
    catalog = load_catalog(run.settings.declaration_folders)
    return promote_versions(run.settings, catalog, numbers, grace_h)


PROMOTE = PlanStage(
    "promote",
    Action(_promote),
    description="waits until the driver folds N+1 and every node has all events of N (the gate). Then appends one record for each read "
    "model, in one transaction: N+1 is `live`, N is `previous`",
    on_failure="the message names what N+1 lacks; or another version was promoted in the meantime: `./foldlake versions` shows it",
    leaves="the old records or the new ones",
    next_try="finds that N+1 is live",
    timeout=timedelta(hours=2),
    group=PROMOTION,
)

PROMOTE_LAKE = PlanStage(
    "promote_lake",
    SparkJob("promote_lake", Engine.LAKE, lambda run: ("--read-model", run.read_model), changes_lake=True),
    description="replaces `lake/<model>` by the live version's table, in one commit",
    on_failure="the next compaction does it",
    leaves="the old table or the new one",
    next_try="finds that it is done. So does the next compaction",
    retries=5,
    timeout=None,
    slot=Slot.LAKE,
    # Lookups answer from the live version already.
    priority=10,
    group=PROMOTION,
)
