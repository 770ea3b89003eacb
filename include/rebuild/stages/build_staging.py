"""The stage `build_staging`: folds the same events in one batch, independent of query and changelog."""

from datetime import timedelta

from include.rebuild.stage import BUILD, VERSION_ARGUMENTS, Engine, PlanStage, Slot, SparkJob

BUILD_STAGING = PlanStage(
    "build_staging",
    SparkJob("build_staging", Engine.LAKE, VERSION_ARGUMENTS),
    description="folds the same events once more in one batch, into `lake/_staging/<model>/v<N+1>`: a second opinion",
    on_failure="the task's log names the cause; a retry starts from the first event",
    leaves="the old table or none, and files that no table refers to",
    next_try="writes the table again, in one commit",
    timeout=timedelta(hours=12),
    slot=Slot.REBUILD,
    group=BUILD,
)
