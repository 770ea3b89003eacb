"""The results of all checks: the Delta table `lake/_quality`, one row an expectation and run."""

import json
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, current_timestamp

from include.lake import quality_path
from include.settings import Settings
from quality.check import CheckResult

COLUMNS = (
    "run_id string, read_model string, version int, store string, mode string, expectation string, passed boolean, "
    "checked bigint, failed bigint, sample string, finding string, duration_s double, report string"
)
# Each check appends one small file.
TIDY_EVERY_COMMITS = 50


def append(spark: SparkSession, settings: Settings, result: CheckResult) -> None:
    """Append a check's rows in one commit; now and then, gather the small files."""
    request = result.request
    rows: list[tuple[Any, ...]] = [
        (
            request.run_id,
            request.read_model,
            result.version,
            str(e.store),
            str(request.mode),
            e.expectation,
            e.passed,
            e.checked,
            e.failed,
            json.dumps(e.sample),
            e.finding,
            e.duration_s,
            result.report,
        )
        for e in result.expectations
    ]
    path = quality_path(settings)
    frame = spark.createDataFrame(rows, COLUMNS).withColumn("checked_at", current_timestamp()).coalesce(1)
    frame.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    _tidy(spark, settings, path)


def _tidy(spark: SparkSession, settings: Settings, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    newest = table.history(1).select(col("version")).first()
    if newest is None or newest.version % TIDY_EVERY_COMMITS != TIDY_EVERY_COMMITS - 1:
        return
    table.optimize().executeCompaction()
    table.vacuum(settings.lake_retention_h)
