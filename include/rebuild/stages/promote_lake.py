"""The stage `promote_lake`: replaces the lake's table by that of the live version."""

from include.rebuild.stage import PROMOTION, READ_MODEL, Engine, PlanStage, Slot, SparkJob

PROMOTE_LAKE = PlanStage(
    "promote_lake",
    SparkJob("promote_lake", Engine.LAKE, ("--read-model", READ_MODEL), changes_lake=True),
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
