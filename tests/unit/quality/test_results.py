"""The table of results: a repeated run replaces its rows, checks may end at the same time, and maintenance removes rows that are older than their retention."""

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.lake.tables import quality_path
from include.quality import results
from include.quality.check import CheckResult
from include.quality.check_run import publish
from include.quality.history import last_runs
from include.settings import CHECKOUT, Settings
from tests.unit.quality.test_report import FAILED, PASSED

FILES_H = 168.0
CHECKS = 4
WRITER = """
import sys
from include.quality import results
from tests.unit.quality.test_results import of_run

results.record(sys.argv[1], 168.0, 0.0, of_run(sys.argv[2]))
"""


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
        "expectation": "amount equals the replayed value",
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


def test_checks_that_end_at_the_same_time_all_have_their_rows(tmp_path: Path) -> None:
    names = [f"run-{number}" for number in range(CHECKS)]
    for attempt in range(2):
        # Each in a process of its own, as checks are. First they create the table, then they replace their rows.
        processes = [
            subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name], cwd=CHECKOUT) for name in names
        ]
        assert [process.wait() for process in processes] == [0] * CHECKS, attempt

    assert sorted(run.run_id for run in last_runs(str(tmp_path))) == names
    assert DeltaTable(quality_path(str(tmp_path))).to_pyarrow_table().num_rows == CHECKS


@pytest.mark.parametrize("umask", [0o077, 0o022])
@pytest.mark.parametrize("is_own_folder", [True, False])
def test_results_in_a_folder_of_the_user_are_for_other_users_as_well(
    tmp_path: Path, umask: int, is_own_folder: bool
) -> None:
    settings = Settings.of(home=tmp_path / "home", lake_dir=str(tmp_path / "lake") if is_own_folder else "")
    previous = os.umask(umask)
    try:
        publish(settings, PASSED.request, lambda: PASSED)
    finally:
        os.umask(previous)

    files = [path for path in Path(quality_path(settings.lake_root)).rglob("*") if path.is_file()]
    readable = {bool(path.stat().st_mode & stat.S_IROTH) for path in files}
    assert readable == {is_own_folder or umask == 0o022}


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
