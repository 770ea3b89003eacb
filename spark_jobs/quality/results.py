"""The results of all checks: the Delta table `lake/_quality`, one row per run and expectation."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, current_timestamp

from include.lake.tables import quality_path
from include.quality.check import CheckResult

COLUMNS = (
    "run_id string, read_model string, version int, store string, mode string, expectation string, passed boolean, "
    "checked bigint, failed bigint, sample string, finding string, duration_s double, report string"
)
# Each check appends one small file, so the table is compacted at this interval.
MAINTENANCE_COMMITS = 50


def record(
    spark: SparkSession, lake_root: str, retention_h: float, results_retention_h: float, result: CheckResult
) -> None:
    """Write a check's rows in one commit, replacing those of an earlier attempt of its run; maintain the table every 50 commits.

    retention_h: retention of replaced files. results_retention_h: retention of rows; 0: all are kept.
    """
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
    path = quality_path(lake_root)
    frame = spark.createDataFrame(rows, COLUMNS).withColumn("checked_at", current_timestamp()).coalesce(1)
    writer = frame.write.format("delta").option("mergeSchema", "true")
    earlier = _rows_of(request.run_id)
    if _has(spark, path, earlier):
        writer.mode("overwrite").option("replaceWhere", earlier).save(path)
    else:
        # An append reads nothing, so it cannot conflict with another check.
        writer.mode("append").save(path)
    _maintain(spark, retention_h, results_retention_h, path)


def _rows_of(run_id: str) -> str:
    """Return the SQL condition that selects a run's rows."""
    escaped = run_id.replace("\\", "\\\\").replace("'", "\\'")
    return f"run_id = '{escaped}'"


def _has(spark: SparkSession, path: str, condition: str) -> bool:
    if not DeltaTable.isDeltaTable(spark, path):
        return False
    return not DeltaTable.forPath(spark, path).toDF().where(condition).isEmpty()


def _maintain(spark: SparkSession, retention_h: float, results_retention_h: float, path: str) -> None:
    table = DeltaTable.forPath(spark, path)
    newest = table.history(1).select(col("version")).first()
    if newest is None or newest.version % MAINTENANCE_COMMITS != MAINTENANCE_COMMITS - 1:
        return
    if results_retention_h:
        table.delete(col("checked_at") < datetime.now(UTC) - timedelta(hours=results_retention_h))
    table.optimize().executeCompaction()
    table.vacuum(retention_h)
