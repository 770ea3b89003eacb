"""OPTIMIZE and VACUUM of a lake table, when they are worth their time, with files and bytes before and after."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from include.lake.tables import CommitTag
from spark_jobs.lake.lake_table import SECONDS_PER_HOUR, USER_METADATA, LakeTable, session_settings

LOG = logging.getLogger(__name__)

# Below this a file is small: opening it costs a reader more than reading it.
SMALL_FILE_BYTES = 16 * 1024 * 1024
# OPTIMIZE writes all of a table of this size again; a merge leaves about four files behind.
SMALL_FILES_WORTH_OPTIMIZE = 24
# Files are kept for a week by default: an hour more does not matter.
VACUUM_INTERVAL_S = 3600.0
RECENT_COMMITS = 50
MEGABYTE = 1e6


@dataclass(frozen=True)
class Usage:
    """What a table takes.

    files, bytes, small_files: of the newest version. stored_*: with all that is kept for time travel, without the log.
    log_files: commits and checkpoints.
    """

    files: int
    bytes: int
    small_files: int
    stored_files: int
    stored_bytes: int
    log_files: int

    def __str__(self) -> str:
        """Return it in one line."""
        return (
            f"{self.files:,} files of {self.bytes / MEGABYTE:,.1f} MB, "
            f"{self.stored_files:,} files of {self.stored_bytes / MEGABYTE:,.1f} MB with those kept for time travel"
        )


@dataclass(frozen=True)
class Maintenance:
    """One OPTIMIZE or VACUUM that was run: what the table took before and after, and how long it took."""

    operation: str
    before: Usage
    after: Usage
    seconds: float

    def __str__(self) -> str:
        """Return it in one line."""
        return f"{self.operation} in {self.seconds:.1f} s: {self.before} -> {self.after}"


def usage(spark: SparkSession, path: str) -> Usage:
    """Measure a table."""
    sizes = _file_sizes(spark, path)
    stored_files, stored_bytes = _content(spark, path)
    log_files, log_bytes = _content(spark, f"{path}/_delta_log")
    return Usage(
        len(sizes),
        sum(sizes),
        sum(size < SMALL_FILE_BYTES for size in sizes),
        stored_files - log_files,
        stored_bytes - log_bytes,
        log_files,
    )


def maintain(table: LakeTable, tag: CommitTag, *, force: bool = False) -> tuple[Maintenance, ...]:
    """Run OPTIMIZE and VACUUM where they are worth it, or in any case, and report each; returns those that ran.

    `tag` is that of the table's newest commit: both keep its content.
    """
    done = []
    before = usage(table.spark, table.path)
    if force or before.small_files >= SMALL_FILES_WORTH_OPTIMIZE:
        done.append(_run("OPTIMIZE", table, tag, before, _optimize))
        before = done[-1].after
    else:
        LOG.info(
            "%s: OPTIMIZE is not worth it with %d small files (%d are): %s",
            table.model.name,
            before.small_files,
            SMALL_FILES_WORTH_OPTIMIZE,
            before,
        )
    if force or _vacuum_is_due(table):
        done.append(_run("VACUUM", table, tag, before, _vacuum))
    return tuple(done)


def _run(
    operation: str, table: LakeTable, tag: CommitTag, before: Usage, run: Callable[[LakeTable], object]
) -> Maintenance:
    started_s = time.monotonic()
    metadata = replace(tag, operation=operation.lower()).to_json()
    with session_settings(table.spark, {USER_METADATA: metadata}):
        run(table)
    seconds = time.monotonic() - started_s
    done = Maintenance(operation, before, usage(table.spark, table.path), seconds)
    LOG.info("%s: %s", table.model.name, done)
    return done


def _optimize(table: LakeTable) -> None:
    DeltaTable.forPath(table.spark, table.path).optimize().executeCompaction()


def _vacuum(table: LakeTable) -> None:
    """Remove what the retention no longer keeps: data files, then commits."""
    DeltaTable.forPath(table.spark, table.path).vacuum()
    # Delta itself rounds the retention of commits up to whole days. A commit whose files are gone is of no use.
    jvm: Any = table.spark._jvm  # noqa: SLF001 - no other way to Delta's log
    log = _delta_log(table.spark, table.path)
    none = jvm.scala.Option.empty()
    minute = jvm.org.apache.spark.sql.delta.TruncationGranularity.MINUTE()
    log.cleanUpExpiredLogs(log.unsafeVolatileSnapshot(), none, none, minute)


def _vacuum_is_due(table: LakeTable) -> bool:
    """Whether the last VACUUM was an hour ago, or as long ago as files are kept; or 50 commits."""
    history = DeltaTable.forPath(table.spark, table.path).history(RECENT_COMMITS)
    recent = history.select("timestamp", "operation").collect()
    vacuums = [commit.timestamp for commit in recent if commit.operation == "VACUUM END"]
    if not vacuums and len(recent) == RECENT_COMMITS:
        return True
    since: datetime = max(vacuums) if vacuums else min(commit.timestamp for commit in recent)
    interval_s = min(VACUUM_INTERVAL_S, table.retention_h * SECONDS_PER_HOUR)
    return datetime.now(UTC) - since.astimezone(UTC) >= timedelta(seconds=interval_s)


def _file_sizes(spark: SparkSession, path: str) -> list[int]:
    """Return the sizes of the files that the newest version consists of."""
    files = _delta_log(spark, path).unsafeVolatileSnapshot().allFiles().toDF()
    return [row["size"] for row in DataFrame(files, spark).select("size").collect()]


def _delta_log(spark: SparkSession, path: str) -> Any:  # noqa: ANN401 - a Java object
    """Return Delta's log of a table, up to date."""
    jvm: Any = spark._jvm  # noqa: SLF001 - no other way to Delta's log
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)  # noqa: SLF001
    log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty())  # noqa: FBT003 - a Java method
    return log


def _content(spark: SparkSession, path: str) -> tuple[int, int]:
    """Return how many files are below a folder, and their bytes."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
    folder = jvm.org.apache.hadoop.fs.Path(path)
    summary = folder.getFileSystem(spark._jsc.hadoopConfiguration()).getContentSummary(folder)  # noqa: SLF001
    return int(summary.getFileCount()), int(summary.getLength())
