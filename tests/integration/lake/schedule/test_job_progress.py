"""The progress of a Spark job moves while its only task reads."""

from pathlib import Path

from pyspark.sql import SparkSession

from include.work_progress import Progress, WorkProgress
from spark_jobs.runtime.job_progress import progress_logged

RECORDS = 3_000
# Natively, so that the task reads row by row.
SLOW = "java_method('java.lang.Thread', 'sleep', 2L) is null"


def test_progress_moves_within_a_task(lake_spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "records.txt"
    file.write_text("".join(f"{number}\n" for number in range(RECORDS)), encoding="utf-8")
    reports: list[Progress] = []
    progress = WorkProgress("a slow job", "records", RECORDS, reports.append)

    with progress_logged(lake_spark, progress):
        lake_spark.read.text(str(file)).where(SLOW).count()

    moving = [report.done for report in reports if 0 < report.done < RECORDS - 1]
    assert len(set(moving)) > 1, reports
    assert moving == sorted(moving)
    assert any(report.seconds_left for report in reports)
