"""The table of results: a repeated run replaces its rows, and maintenance removes rows that are older than their retention."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.lake.tables import quality_path
from include.quality import results
from include.quality.check import CheckResult
from include.quality.history import last_runs
from tests.unit.quality.test_report import FAILED, PASSED

FILES_H = 168.0


def of_run(run_id: str, result: CheckResult = FAILED) -> CheckResult:
    return replace(result, request=replace(result.request, run_id=run_id))


def write(root: str, run_id: str, *, retention_h: float = 0.0, days_ago: int = 0) -> None:
    """Record a check, as if it had been made `days_ago`."""
    results.record(root, FILES_H, retention_h, of_run(run_id))
    if days_ago:
        then = datetime.now(UTC) - timedelta(days=days_ago)
        DeltaTable(quality_path(root)).update(
            new_values={"checked_at": then}, predicate=f"run_id = '{run_id}'"
        )


def test_a_row_has_the_result_of_an_expectation(tmp_path: Path) -> None:
    results.record(str(tmp_path), FILES_H, 0.0, replace(FAILED, report="/reports/a.html"))

    (row,) = DeltaTable(quality_path(str(tmp_path))).to_pyarrow_table().to_pylist()
    checked_at = row.pop("checked_at")
    assert datetime.now(UTC) - checked_at < timedelta(minutes=1)
    assert json.loads(row.pop("sample")) == [{"place": "lake", "key": "7"}]
    assert row == {
        "run_id": FAILED.request.run_id,
        "read_model": "balance",
        "version": 3,
        "store": "lake",
        "mode": "full",
        "expectation": "amount is what the events fold to",
        "passed": False,
        "checked": 100_000,
        "failed": 1,
        "finding": "",
        "duration_s": 0.0,
        "report": "/reports/a.html",
    }


@pytest.mark.parametrize("run_id", ["manual__2026-01-01T00:00:00+00:00", 'o\'clock \\ "7" %_'])
def test_a_repeated_run_replaces_its_rows_and_no_others(tmp_path: Path, run_id: str) -> None:
    root = str(tmp_path)
    write(root, "another")
    write(root, run_id)

    results.record(root, FILES_H, 0.0, of_run(run_id, PASSED))

    runs = {run.run_id: run.passed for run in last_runs(root)}
    assert runs == {"another": False, run_id: True}
    assert DeltaTable(quality_path(root)).to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize(
    ("retention_h", "kept"), [(24.0 * 30, ["recent", "new"]), (0.0, ["old", "recent", "new"])]
)
def test_maintenance_removes_old_rows_and_compacts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retention_h: float, kept: list[str]
) -> None:
    root = str(tmp_path)
    write(root, "old", retention_h=retention_h, days_ago=31)
    write(root, "recent", retention_h=retention_h, days_ago=29)
    # Maintain the table after this commit.
    monkeypatch.setattr(results, "MAINTENANCE_COMMITS", 1)

    results.record(root, 0.0, retention_h, of_run("new"))

    assert [run.run_id for run in last_runs(root)] == kept
    assert len(list(Path(quality_path(root)).glob("*.parquet"))) == 1
