"""The stage `catch_up`: folds the version's changelog from the first event."""

from datetime import timedelta

from include.rebuild.stage import BUILD, VERSION_ARGUMENTS, Engine, PlanStage, Slot, SparkJob

CATCH_UP = PlanStage(
    "catch_up",
    SparkJob("catch_up", Engine.STREAM, VERSION_ARGUMENTS),
    description="folds N+1 from its first event, with the stream's own query in large batches",
    on_failure="the task's log names the cause; a retry continues from the checkpoint",
    leaves="a checkpoint, some changelog records",
    next_try="continues from the last committed batch; records that repeat have the same content",
    timeout=timedelta(hours=12),
    slot=Slot.REBUILD,
    group=BUILD,
)
