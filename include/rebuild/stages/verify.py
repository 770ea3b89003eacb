"""The stage `verify`: runs the quality check of changelog and staging against the log."""

from datetime import timedelta

from include.rebuild.stage import (
    BUILD,
    READ_MODEL,
    VERSION,
    VERSION_ARGUMENTS,
    Engine,
    PlanStage,
    Slot,
    SparkJob,
)

CHECK_ID = f"rebuild-{READ_MODEL}-v{VERSION}"

VERIFY = PlanStage(
    "verify",
    SparkJob(
        "quality_check",
        Engine.LAKE,
        (*VERSION_ARGUMENTS, "--stores", "changelog,staging", "--mode", "full", "--run-id", CHECK_ID),
        check_id=CHECK_ID,
    ),
    description="compares changelog and staging with the log, key by key",
    on_failure="the report names the keys that differ: correct the fold, then start a new rebuild",
    next_try="checks again",
    retries=2,
    timeout=timedelta(hours=12),
    slot=Slot.REBUILD,
    group=BUILD,
)
