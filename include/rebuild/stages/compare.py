"""The stage `compare`: compares the new version with the live one, key by key."""

from datetime import timedelta

from include.rebuild.stage import BUILD, VERSION_ARGUMENTS, Engine, PlanStage, Slot, SparkJob
from include.rebuild.stages.register_candidate import REGISTER_CANDIDATE
from include.rebuild.stages.verify import CHECK_ID

# The comparison of a version has the id of its check.
COMPARISON_ID = CHECK_ID


def comparison_id(read_model: str, version: int) -> str:
    """Return the id of the comparison of a read model's version."""
    registered = {REGISTER_CANDIDATE.name: {"version": version}}
    return COMPARISON_ID.format(form={"read_model": read_model}, results=registered)


COMPARE = PlanStage(
    "compare",
    SparkJob(
        "compare_versions",
        Engine.LAKE,
        (*VERSION_ARGUMENTS, "--run-id", COMPARISON_ID),
        comparison_id=COMPARISON_ID,
    ),
    description="compares N+1 with the live version as of the same events: keys that change, totals, largest changes. A dry run ends here",
    on_failure="the task's log names the cause; a retry compares again",
    next_try="compares again",
    timeout=timedelta(hours=12),
    slot=Slot.REBUILD,
    group=BUILD,
)
