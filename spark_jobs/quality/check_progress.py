"""The progress of a check's steps, each of which reads many records in one action of Spark."""

from contextlib import AbstractContextManager

from include.work_progress import WorkProgress
from spark_jobs.quality.stores.base import Target
from spark_jobs.runtime.job_progress import progress_logged, tasks_logged


def step_logged(
    target: Target, step: str, unit: str = "records", total: int | None = None
) -> AbstractContextManager[None]:
    """Log during a block of code how many records a step has read.

    step: such as "replaying the log". total: the number of records that it reads, if known.
    """
    what = f"check of {target.model.name} v{target.version.number}: {step}"
    return progress_logged(target.spark, WorkProgress(what, unit, total, target.report))


def cached_step_logged(target: Target, step: str) -> AbstractContextManager[None]:
    """Log during a block of code how many tasks a step has ended, which reads what other steps have cached."""
    what = f"check of {target.model.name} v{target.version.number}: {step}"
    progress = WorkProgress(what, "Spark tasks", None, target.report, is_total_final=False)
    return tasks_logged(target.spark, progress)
