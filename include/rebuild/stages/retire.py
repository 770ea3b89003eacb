"""The stage `retire`: retires the replaced version when its grace time has ended."""

from datetime import UTC, datetime, timedelta

from include.rebuild.stage import DelayedAction, PlanStage, PlanStart, StageRun


def _due_at(run: StageRun) -> datetime | None:
    """Return the end of the grace time; None when nothing was replaced, or the version is live again or retired."""
    from include.rebuild.grace_time import grace_left_s
    from include.rebuild.retirement import previous_version

    number = run.results["promote"]
    if number is None:
        return None
    version = previous_version(run.settings.kafka.bootstrap_servers, run.read_model, int(number))
    if version is None:
        return None
    left_s = grace_left_s(run.settings.home, run.read_model, version)
    # The wall clock only says when to ask again: the version is due when no time is left.
    return datetime.now(UTC) + timedelta(seconds=left_s)


def _retire(run: StageRun) -> None:
    from include.rebuild.retirement import retire_version

    retire_version(run.settings, run.read_model, int(run.results["promote"]))


def _replaces(start: PlanStart) -> bool:
    return start.replaced is not None


def _replaced(start: PlanStart) -> int:
    assert start.replaced is not None  # noqa: S101 - see _replaces
    return start.replaced


RETIRE = PlanStage(
    "retire",
    DelayedAction(_due_at, _retire),
    description="after the grace time, makes N `retired` and removes what it leaves",
    on_failure="the DAG `retirement` does it",
    leaves="some of the version's files",
    next_try="removes the rest. So does the DAG `retirement`",
    timeout=None,
    is_needed=_replaces,
    subject=_replaced,
)
