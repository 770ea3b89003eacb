"""The results of earlier checks, from `lake/_quality`, read without Spark."""

from dataclasses import dataclass, field
from datetime import datetime

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from include.lake.tables import quality_path

COLUMNS = [
    "run_id",
    "checked_at",
    "read_model",
    "version",
    "store",
    "mode",
    "expectation",
    "passed",
    "failed",
]


@dataclass(frozen=True)
class PastRun:
    """The result of an earlier check. failed: the expectations that were not met, with the store of each."""

    run_id: str
    checked_at: datetime
    read_model: str
    version: int
    mode: str
    stores: tuple[str, ...] = ()
    failed: tuple[str, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether every expectation was met."""
        return not self.failed


def last_runs(lake_root: str, limit: int = 20) -> list[PastRun]:
    """Return the newest checks, the newest last; an empty list before the first check."""
    try:
        table = DeltaTable(quality_path(lake_root)).to_pyarrow_table(columns=COLUMNS)
    except TableNotFoundError:
        return []
    runs: dict[tuple[str, datetime], list[dict[str, object]]] = {}
    for row in table.to_pylist():
        runs.setdefault((row["run_id"], row["checked_at"]), []).append(row)
    newest = sorted(runs.items(), key=lambda run: run[0][1])[-limit:]
    return [_past_run(rows) for _, rows in newest]


def _past_run(rows: list[dict[str, object]]) -> PastRun:
    first = rows[0]
    failed = [
        f"{row['store']}: {row['expectation']} ({row['failed']:,})" for row in rows if not row["passed"]
    ]
    return PastRun(
        run_id=str(first["run_id"]),
        checked_at=first["checked_at"],  # type: ignore[arg-type]  # a timestamp column
        read_model=str(first["read_model"]),
        version=int(str(first["version"])),
        mode=str(first["mode"]),
        stores=tuple(dict.fromkeys(str(row["store"]) for row in rows)),
        failed=tuple(failed),
    )
