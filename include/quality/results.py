"""The results of all checks: the Delta table `lake/_quality`, one row per run and expectation, written without Spark."""

import json
import logging
import math
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from include.lake.tables import quality_path
from include.quality.check import CheckResult

if TYPE_CHECKING:
    import pyarrow as pa

LOG = logging.getLogger("foldlake.quality")
# Of a commit that conflicts with one of another check.
ATTEMPTS, PAUSE_S = 10, 0.2
# Each check appends one small file, so the table is compacted at this interval.
MAINTENANCE_COMMITS = 50

# The columns: their types and meanings, as Spark has written them before.
COLUMNS = {
    "run_id": ("string", "Id of the check."),
    "read_model": ("string", "The read model."),
    "version": ("int", "Its version."),
    "store": ("string", "What was checked: lake, nodes, changelog or staging."),
    "mode": ("string", "full, incremental or sample."),
    "expectation": ("string", "Name of the expectation."),
    "passed": ("boolean", "Whether it was met."),
    "checked": ("long", "Number of records that were checked."),
    "failed": ("long", "Number of records that failed."),
    "sample": ("string", "Some of the records that failed, as JSON."),
    "finding": ("string", "What failed, in words."),
    "duration_s": ("double", "Duration of the check in seconds."),
    "report": ("string", "The check's report."),
    "checked_at": ("timestamp", "When the check ended."),
}


def record(lake_root: str, retention_h: float, results_retention_h: float, result: CheckResult) -> None:
    """Write a check's rows in one commit, replacing those of an earlier attempt of its run; maintain the table every 50 commits.

    retention_h: retention of replaced files. results_retention_h: retention of rows; 0: all are kept.
    """
    # The library takes 20 MB, which only the end of a check needs.
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

    path, rows = quality_path(lake_root), _rows(result)
    for attempt in range(ATTEMPTS):
        try:
            _write(path, rows, result.request.run_id)
            break
        except CommitFailedError as error:
            if attempt + 1 == ATTEMPTS:
                raise
            LOG.info("another check has written results at the same time, trying again: %s", error)
            time.sleep(PAUSE_S)
    try:
        _maintain(path, retention_h, results_retention_h)
    except CommitFailedError as error:
        LOG.warning("the table of results is not maintained this time: %s", error)
    _remove_old_checksum(path)


def _write(path: str, rows: "pa.Table", run_id: str) -> None:
    """Commit the rows, in place of others of the run; raises CommitFailedError if another commit conflicts with this one."""
    from deltalake import write_deltalake  # noqa: PLC0415 - as above

    if _has_rows_of(path, run_id):
        write_deltalake(path, rows, mode="overwrite", predicate=_rows_of(run_id), schema_mode="merge")
    else:
        # An append reads nothing, so it conflicts only with a commit that creates the table.
        write_deltalake(path, rows, mode="append", schema_mode="merge")


def _rows(result: CheckResult) -> "pa.Table":
    """Return the rows of a check."""
    import pyarrow as pa  # noqa: PLC0415 - as deltalake

    types = {
        "string": pa.string(),
        "int": pa.int32(),
        "long": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    request, now = result.request, datetime.now(UTC)
    of_check = {
        "run_id": request.run_id,
        "read_model": request.read_model,
        "version": result.version,
        "mode": str(request.mode),
        "report": result.report,
        "checked_at": now,
    }
    rows = [
        {
            **of_check,
            "store": str(found.store),
            "expectation": found.expectation,
            "passed": found.passed,
            "checked": found.checked,
            "failed": found.failed,
            "sample": json.dumps(found.sample),
            "finding": found.finding,
            "duration_s": found.duration_s,
        }
        for found in result.expectations
    ]
    return pa.Table.from_pylist(
        rows, schema=pa.schema([(name, types[kind]) for name, (kind, _) in COLUMNS.items()])
    )


def _has_rows_of(path: str, run_id: str) -> bool:
    from deltalake import DeltaTable  # noqa: PLC0415 - as above

    if not DeltaTable.is_deltatable(path):
        return False
    found = DeltaTable(path).to_pyarrow_table(columns=["run_id"], filters=[("run_id", "=", run_id)])
    return bool(found.num_rows)


def _rows_of(run_id: str) -> str:
    """Return the SQL condition that selects a run's rows."""
    return "run_id = '{}'".format(run_id.replace("'", "''"))


def _maintain(path: str, retention_h: float, results_retention_h: float) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - as above

    table = DeltaTable(path)
    if table.version() % MAINTENANCE_COMMITS != MAINTENANCE_COMMITS - 1:
        return
    if results_retention_h:
        table.delete(_rows_before(datetime.now(UTC) - timedelta(hours=results_retention_h)))
    table.optimize.compact()
    table.vacuum(math.ceil(retention_h), dry_run=False, enforce_retention_duration=False)


def _remove_old_checksum(path: str) -> None:
    """Remove Hadoop's checksum of the pointer to the newest checkpoint, which Spark has written and this library replaces.

    Spark reads the pointer as it is if there is no checksum; with an old one, it retries for seconds, and then lists the log.
    """
    local = path.removeprefix("file://")
    if "://" not in local:
        (Path(local) / "_delta_log" / "._last_checkpoint.crc").unlink(missing_ok=True)


def _rows_before(time: datetime) -> str:
    """Return the SQL condition that selects the rows of checks before a time in UTC."""
    return f"checked_at < arrow_cast('{time:%Y-%m-%dT%H:%M:%S.%f}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')"
