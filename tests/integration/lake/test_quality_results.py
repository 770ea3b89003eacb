"""A table of results that Spark has written is continued without Spark, and Spark reads what is added."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import current_timestamp

from include.lake.tables import quality_path
from include.quality import results
from include.quality.history import last_runs
from tests.unit.quality.test_report import FAILED

# As releases up to now have created it.
COLUMNS = (
    "run_id string, read_model string, version int, store string, mode string, expectation string, passed boolean, "
    "checked bigint, failed bigint, sample string, finding string, duration_s double, report string"
)
CHECKPOINT_INTERVAL = "2"
SPARK_RUNS, RUNS = 3, 4


def test_a_table_of_spark_is_continued(
    lake_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = str(tmp_path_factory.mktemp("lake"))
    path = quality_path(root)
    for number in range(SPARK_RUNS):
        row = (f"spark-{number}", "balance", 1, "lake", "full", "fresh", True, 1, 0, "[]", "", 1.0, "")
        frame = lake_spark.createDataFrame([row], COLUMNS).withColumn("checked_at", current_timestamp())
        options = {"mergeSchema": "true", "delta.checkpointInterval": CHECKPOINT_INTERVAL}
        frame.coalesce(1).write.format("delta").options(**options).mode("append").save(path)
    before = lake_spark.read.format("delta").load(path)
    log = Path(path) / "_delta_log"
    checksum = log / "._last_checkpoint.crc"
    assert checksum.exists()

    for number in [*range(RUNS), 0]:
        request = replace(FAILED.request, run_id=f"run-{number}")
        results.record(root, 168.0, 0.0, replace(FAILED, request=request))

    after = lake_spark.read.format("delta").load(path)
    assert after.schema == before.schema
    expected = [f"spark-{number}" for number in range(SPARK_RUNS)] + [f"run-{n}" for n in (1, 2, 3, 0)]
    assert [row.run_id for row in after.orderBy("checked_at").collect()] == expected
    assert [run.run_id for run in last_runs(root)] == expected
    assert json.loads((log / "_last_checkpoint").read_text(encoding="utf-8"))["version"] > SPARK_RUNS
    # Hadoop compares the pointer with its checksum, if there is one.
    assert not checksum.exists()
