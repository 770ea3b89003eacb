"""The newest check of each read model, found by the time of its summary."""

import json
import os
from pathlib import Path

from include.quality.newest_checks import newest_checks
from include.quality.report import reports_directory


def summary(home: Path, name: str, at_s: float, *, page: bool = True, **fields: object) -> None:
    request: dict[str, object] = {
        "read_model": fields.pop("read_model", "balance"),
        "mode": "full",
        "stores": ["lake", "nodes"],
    }
    content = {"request": request, "passed": True, "verdict": name, "duration_s": 1.5, "version": 2} | fields
    folder = reports_directory(home)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content))
    os.utime(path, (at_s, at_s))
    if page:
        path.with_suffix(".html").touch()


def test_the_newest_check_of_each_read_model_is_found(tmp_path: Path) -> None:
    summary(tmp_path, "first", 1000)
    summary(tmp_path, "second", 2000, passed=False)
    summary(tmp_path, "other", 1500, read_model="parcels", page=False, passed=None)

    found = newest_checks(tmp_path, ("balance", "parcels", "never-checked"))

    balance, parcels = found["balance"], found["parcels"]
    assert (balance.verdict, balance.passed, balance.version, balance.report) == (
        "second",
        False,
        2,
        "second.html",
    )
    assert balance.ended_at.timestamp() == 2000
    assert (parcels.verdict, parcels.passed, parcels.report) == ("other", None, "")
    assert "never-checked" not in found


def test_the_engine_is_named_with_the_reason(tmp_path: Path) -> None:
    summary(tmp_path, "one", 1000, engine="duckdb", engine_reason="")
    summary(tmp_path, "other", 1000, read_model="parcels", engine="spark", engine_reason="a rule has a UDF")
    summary(tmp_path, "unknown", 1000, read_model="orders", passed=None)

    found = newest_checks(tmp_path, ("balance", "parcels", "orders"))

    assert {name: check.engine_text for name, check in found.items()} == {
        "balance": "with DuckDB",
        "parcels": "with Spark, because a rule has a UDF",
        "orders": "",
    }


def test_a_file_that_is_no_summary_is_passed_over(tmp_path: Path) -> None:
    summary(tmp_path, "good", 1000)
    (reports_directory(tmp_path) / "broken.json").write_text("{")
    (reports_directory(tmp_path) / "other.json").write_text("[]")

    assert newest_checks(tmp_path, ("balance",))["balance"].verdict == "good"


def test_without_reports_there_is_no_check(tmp_path: Path) -> None:
    assert newest_checks(tmp_path, ("balance",)) == {}


def test_of_given_versions_a_candidates_check_hides_no_failed_one(tmp_path: Path) -> None:
    summary(tmp_path, "live", 1000, passed=False)
    summary(tmp_path, "candidate", 2000, version=3)
    summary(tmp_path, "uncheckable", 1000, read_model="parcels", passed=None, version=None)

    found = newest_checks(tmp_path, ("balance", "parcels"), {"balance": 2, "parcels": 7})

    assert (found["balance"].verdict, found["balance"].passed) == ("live", False)
    assert found["parcels"].verdict == "uncheckable"


def test_an_idle_read_model_keeps_its_check_among_those_of_a_day(tmp_path: Path) -> None:
    summary(tmp_path, "idle", 1000, passed=False, read_model="parcels")
    for number in range(900):
        summary(tmp_path, f"busy-{number}", 2000 + number, page=False)

    assert newest_checks(tmp_path, ("balance", "parcels"))["parcels"].passed is False
