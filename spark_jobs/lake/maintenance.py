"""Runs OPTIMIZE and VACUUM on a lake table when they are due, and reports files and bytes before and after."""

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import to_json

from include.lake.tagged_table import RECENT_COMMITS, vacuum_is_due
from include.lake.tags import LakeTagT
from spark_jobs.lake.spark_table import SparkTable, delta_log

LOG = logging.getLogger(__name__)

# A smaller file costs a reader more to open than to read.
SMALL_FILE_BYTES = 16 * 1024 * 1024
# OPTIMIZE rewrites the whole of a table this small; a merge adds about four files.
OPTIMIZE_AT_SMALL_FILES = 24
MEGABYTE = 1e6


@dataclass(frozen=True)
class Usage:
    """The storage that a table uses.

    files, bytes: of the newest version. small_files: those of them that OPTIMIZE could merge, as their partition has another one.
    stored_*: including files kept for time travel, excluding the log.
    log_files: commits and checkpoints.
    """

    files: int
    bytes: int
    small_files: int
    stored_files: int
    stored_bytes: int
    log_files: int

    def __str__(self) -> str:
        """Return the usage in one line."""
        return (
            f"{self.files:,} files of {self.bytes / MEGABYTE:,.1f} MB, "
            f"{self.stored_files:,} files of {self.stored_bytes / MEGABYTE:,.1f} MB including time travel"
        )


@dataclass(frozen=True)
class Maintenance:
    """A completed OPTIMIZE or VACUUM: the table's usage before and after, and the duration."""

    operation: str
    before: Usage
    after: Usage
    seconds: float

    def __str__(self) -> str:
        """Return the operation in one line."""
        return f"{self.operation} in {self.seconds:.1f} s: {self.before} -> {self.after}"


def usage(spark: SparkSession, path: str) -> Usage:
    """Return the storage that a table uses."""
    files = _files(spark, path)
    small = Counter(partition for partition, size in files if size < SMALL_FILE_BYTES)
    stored_files, stored_bytes = _content(spark, path)
    log_files, log_bytes = _content(spark, f"{path}/_delta_log")
    return Usage(
        len(files),
        sum(size for _, size in files),
        sum(count for count in small.values() if count > 1),
        stored_files - log_files,
        stored_bytes - log_bytes,
        log_files,
    )


def maintain(
    table: SparkTable[LakeTagT], tag: LakeTagT, *, force: bool = False
) -> tuple[tuple[Maintenance, ...], Usage]:
    """Run OPTIMIZE and VACUUM if they are due or forced, and log each; returns the completed ones, and the usage afterwards.

    `tag` is the tag of the table's newest commit: neither operation changes the content.
    """
    done = []
    now = usage(table.spark, table.path)
    if force or now.small_files >= OPTIMIZE_AT_SMALL_FILES:
        done.append(_run("OPTIMIZE", table, tag, now, _optimize))
        now = done[-1].after
    else:
        LOG.info(
            "%s: OPTIMIZE is not due with %d small files (threshold: %d): %s",
            table.name,
            now.small_files,
            OPTIMIZE_AT_SMALL_FILES,
            now,
        )
    if force or vacuum_is_due(table.history(RECENT_COMMITS), table.retention_h, datetime.now(UTC)):
        done.append(_run("VACUUM", table, tag, now, _vacuum))
        now = done[-1].after
    return tuple(done), now


def _run(
    operation: str,
    table: SparkTable[LakeTagT],
    tag: LakeTagT,
    before: Usage,
    run: Callable[[SparkTable[LakeTagT]], object],
) -> Maintenance:
    started_s = time.monotonic()
    with table.commits_tagged(replace(tag, operation=operation.lower())):
        run(table)
    seconds = time.monotonic() - started_s
    done = Maintenance(operation, before, usage(table.spark, table.path), seconds)
    LOG.info("%s: %s", table.name, done)
    return done


def _optimize(table: SparkTable[LakeTagT]) -> None:
    DeltaTable.forPath(table.spark, table.path).optimize().executeCompaction()


def _vacuum(table: SparkTable[LakeTagT]) -> None:
    """Remove data files, then commits, that are older than the retention."""
    DeltaTable.forPath(table.spark, table.path).vacuum()
    # Delta rounds the retention of commits up to whole days, but a commit whose files are gone is useless.
    log, snapshot = delta_log(table.spark, table.path)
    jvm: Any = table.spark._jvm  # noqa: SLF001 - no other way to Delta's log
    none = jvm.scala.Option.empty()
    minute = jvm.org.apache.spark.sql.delta.TruncationGranularity.MINUTE()
    log.cleanUpExpiredLogs(snapshot, none, none, minute)


def _files(spark: SparkSession, path: str) -> list[tuple[str, int]]:
    """Return the partition and the size of each file of the newest version; all have one partition in a table without partitions."""
    _, snapshot = delta_log(spark, path)
    files = DataFrame(snapshot.allFiles().toDF(), spark)
    partition = to_json("partitionValues").alias("partition")
    return [(row["partition"], row["size"]) for row in files.select(partition, "size").collect()]


def _content(spark: SparkSession, path: str) -> tuple[int, int]:
    """Return the number of files below a folder, and their total bytes."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
    folder = jvm.org.apache.hadoop.fs.Path(path)
    summary = folder.getFileSystem(spark._jsc.hadoopConfiguration()).getContentSummary(folder)  # noqa: SLF001
    return int(summary.getFileCount()), int(summary.getLength())
