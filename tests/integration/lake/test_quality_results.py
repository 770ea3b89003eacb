"""Rows of the quality checks' results that are older than their retention are removed when the table is maintained."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.functions import lit

from include.lake.tables import quality_path
from include.quality.check import CheckResult
from include.quality.history import last_runs
from spark_jobs.quality import results
from tests.unit.quality.test_report import FAILED

FILES_H = 168.0


def of_run(run_id: str) -> CheckResult:
    return replace(FAILED, request=replace(FAILED.request, run_id=run_id))


def write(spark: SparkSession, root: str, run_id: str, *, retention_h: float, days_ago: int = 0) -> None:
    """Record a check, as if it had been made `days_ago`."""
    results.record(spark, root, FILES_H, retention_h, of_run(run_id))
    if days_ago:
        then = lit(datetime.now(UTC) - timedelta(days=days_ago))
        DeltaTable.forPath(spark, quality_path(root)).update(f"run_id = '{run_id}'", {"checked_at": then})


@pytest.mark.parametrize(
    ("retention_h", "kept"), [(24.0 * 30, ["recent", "new"]), (0.0, ["old", "recent", "new"])]
)
def test_old_results_are_removed(
    lake_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    retention_h: float,
    kept: list[str],
) -> None:
    root = str(tmp_path_factory.mktemp("lake"))
    write(lake_spark, root, "old", retention_h=retention_h, days_ago=31)
    write(lake_spark, root, "recent", retention_h=retention_h, days_ago=29)
    # Maintain the table after this commit.
    monkeypatch.setattr(results, "MAINTENANCE_COMMITS", 1)

    write(lake_spark, root, "new", retention_h=retention_h)

    assert [run.run_id for run in last_runs(root)] == kept
