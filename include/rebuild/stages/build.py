"""The stages that build a version and prove it: Spark jobs, each of which folds the whole log."""

from collections.abc import Sequence
from datetime import timedelta

from include.quality.check import CheckRequest, Mode, StoreName, job_arguments
from include.rebuild.stage import BUILD, Engine, PlanStage, Report, Slot, SparkJob, StageRun

TIMEOUT = timedelta(hours=12)
STORES = (StoreName.CHANGELOG, StoreName.STAGING)


def _version(run: StageRun) -> tuple[str, ...]:
    return ("--read-model", run.read_model, "--version", str(run.version.number))


def _check(run: StageRun) -> Sequence[str]:
    return job_arguments(CheckRequest(run.read_model, STORES, Mode.FULL, run.report_id, run.version.number))


CATCH_UP = PlanStage(
    "catch_up",
    SparkJob("catch_up", Engine.STREAM, _version),
    description="folds N+1 from its first event, with the stream's own query in large batches",
    on_failure="the task's log names the cause; a retry continues from the checkpoint",
    leaves="a checkpoint, some changelog records",
    next_try="continues from the last committed batch; records that repeat have the same content",
    timeout=TIMEOUT,
    slot=Slot.REBUILD,
    group=BUILD,
)

# Independent of the query and the changelog.
BUILD_STAGING = PlanStage(
    "build_staging",
    SparkJob("build_staging", Engine.LAKE, _version),
    description="folds the same events again, in one batch, into `lake/_staging/<model>/v<N+1>`",
    on_failure="the task's log names the cause; a retry starts from the first event",
    leaves="the old table or none, and files that no table refers to",
    next_try="writes the table again, in one commit",
    timeout=TIMEOUT,
    slot=Slot.REBUILD,
    group=BUILD,
)

VERIFY = PlanStage(
    "verify",
    SparkJob("quality_check", Engine.LAKE, _check, report=Report.CHECK),
    description="compares changelog and staging with the log, key by key",
    on_failure="the report names the keys that differ: correct the fold, then start a new rebuild",
    next_try="checks again",
    retries=2,
    timeout=TIMEOUT,
    slot=Slot.REBUILD,
    group=BUILD,
)

COMPARE = PlanStage(
    "compare",
    SparkJob(
        "compare_versions",
        Engine.LAKE,
        lambda run: (*_version(run), "--run-id", run.report_id),
        report=Report.COMPARISON,
    ),
    description="compares N+1 with the live version as of the same events. A dry run ends here",
    on_failure="the task's log names the cause; a retry compares again",
    next_try="compares again",
    timeout=TIMEOUT,
    slot=Slot.REBUILD,
    group=BUILD,
)
