"""Spark's settings for the jobs that read and write the lake, as data, because they are needed to launch the JVM; and the command of a job."""

import sys
from collections.abc import Sequence

from include.settings import CHECKOUT, LakeSettings, Settings
from include.spark.stream_config import (
    FORGET_SOON,
    JAVA_OPTIONS,
    LOOPBACK,
    PRIVATE_FILES,
    QUICK_COLUMNS,
    REPORT_SOON,
)

# The process of a job needs the settings as variables, and this one.
PYTHON_VARIABLE = "FOLDLAKE_PYTHON"
# The job server collects its heap after every job (spark_jobs/runtime/lake_job.py). With these options the collector then returns
# what is free beyond this share; without them it never returns what a job has once used.
SHRINK_HEAP = "-XX:+UseAdaptiveSizePolicyWithSystemGC -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"

LAKE_CONFIG: dict[str, str] = (
    FORGET_SOON
    | QUICK_COLUMNS
    | REPORT_SOON
    | {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # For tables that fit one machine: with Delta's default of 50, reading the log takes longer than merging into the table.
        "spark.databricks.delta.snapshotPartitions": "2",
        # FOLDLAKE_LAKE_RETENTION_H may be shorter than Delta's minimum of a week.
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # A commit without files still records the offsets up to which the table is complete.
        "spark.databricks.delta.skipRecordingEmptyCommits": "false",
        # VACUUM lists the table's folders in this many tasks, 10,000 by default.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
        # A check runs many sorts and joins concurrently. With the 16 MiB pages that Spark chooses, a task's fair share of a small
        # memory can be too small for one page for each of them ("UNABLE_TO_ACQUIRE_MEMORY").
        "spark.buffer.pageSize": "1m",
        # To find out how a cached column can be compressed took as long as to build it. A check's frames are cached for seconds.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {SHRINK_HEAP}",
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
    }
)

# For jobs that decode events: Spark would push the filter on decoded events below the decoding and decode each event twice.
DECODE_ONCE: dict[str, str] = {
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates,"
        "org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughNonJoin"
    ),
}


def lake_config(lake: LakeSettings) -> dict[str, str]:
    """Return every Spark setting of a lake job except its master and jars."""
    config = LAKE_CONFIG | {
        "spark.driver.memory": f"{lake.driver_memory_mb}m",
        "spark.sql.shuffle.partitions": str(lake.shuffle_partitions),
    }
    if lake.master.startswith("local"):
        config |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
        # Tables in a folder that the user chose may be for other users as well.
        config |= {} if lake.dir else PRIVATE_FILES
    return config


def lake_job_command(settings: Settings, job: str, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs `spark_jobs/<job>.py` without Airflow, in the home's job server or in a process of its own.

    The job ends with the thread that starts it. Run it in CHECKOUT.
    """
    return [
        str(CHECKOUT / "stack" / "bin" / "spark-submit-lake"),
        *("--master", settings.lake.master),
        *(f"--conf={name}={value}" for name, value in lake_config(settings.lake).items()),
        str(CHECKOUT / "spark_jobs" / f"{job}.py"),
        *arguments,
    ]


def interpreter_variable() -> dict[str, str]:
    """Return the variable by which the command finds this process's interpreter."""
    return {PYTHON_VARIABLE: sys.executable}
