"""The progress of a Spark job moves with each task that has ended, however many run at once."""

from pyspark.sql import SparkSession

from include.work_progress import Progress, WorkProgress
from spark_jobs.runtime.job_progress import progress_logged, tasks_logged

RECORDS, TASKS = 3_000, 12
SLOW = "java_method('java.lang.Thread', 'sleep', 5L) is null"


def test_progress_moves_within_a_stage(lake_spark: SparkSession) -> None:
    reports: list[Progress] = []
    progress = WorkProgress("a slow job", "records", RECORDS, reports.append)

    with progress_logged(lake_spark, progress):
        lake_spark.range(0, RECORDS, 1, TASKS).where(SLOW).count()

    moving = [report.done for report in reports if 0 < report.done < RECORDS - 1]
    assert len(set(moving)) > 1, reports
    assert moving == sorted(moving)
    assert any(report.seconds_left for report in reports)


def test_what_reads_a_cache_counts_tasks_of_those_that_are_planned(lake_spark: SparkSession) -> None:
    cached = lake_spark.range(0, RECORDS, 1, TASKS).cache()
    cached.count()
    reports: list[Progress] = []
    progress = WorkProgress("an evaluation", "Spark tasks", None, reports.append, is_total_final=False)

    with tasks_logged(lake_spark, progress):
        cached.where(SLOW).count()
    cached.unpersist()

    assert reports
    assert all(0 <= report.done < (report.total or 0) <= TASKS + 1 for report in reports), reports
    assert all(report.seconds_left is None for report in reports)
