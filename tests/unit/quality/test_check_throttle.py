"""A long check is followed by a long pause, for its read model only."""

import json
import os
from pathlib import Path

import pytest

from include.quality.check import Mode
from include.quality.check_throttle import PAUSE_FACTOR, last_check_text, pause_left_s
from include.quality.report import reports_directory, summary_path

NOW_S = 1_800_000_000.0
DURATION_S = 60.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    reports_directory(tmp_path).mkdir(parents=True)
    return tmp_path


def ended(
    home: Path,
    run_id: str,
    ago_s: float,
    read_model: str = "balance",
    mode: str = "full",
    full_check_reason: str = "",
) -> None:
    path = summary_path(home, run_id)
    request = {"read_model": read_model, "mode": mode}
    path.write_text(
        json.dumps({"request": request, "duration_s": DURATION_S, "full_check_reason": full_check_reason})
    )
    os.utime(path, (NOW_S - ago_s, NOW_S - ago_s))


def test_before_the_first_check_nothing_is_throttled(tmp_path: Path) -> None:
    assert pause_left_s(tmp_path, "balance", NOW_S) == 0


def test_the_newest_check_sets_the_throttle(home: Path) -> None:
    ended(home, "older", ago_s=10_000)
    ended(home, "newest", ago_s=40)

    assert pause_left_s(home, "balance", NOW_S) == pytest.approx(DURATION_S * PAUSE_FACTOR - 40)
    assert pause_left_s(home, "balance", NOW_S + DURATION_S * PAUSE_FACTOR) == 0


def test_checks_of_other_read_models_do_not_throttle(home: Path) -> None:
    ended(home, "visits", ago_s=1, read_model="visits")

    assert pause_left_s(home, "balance", NOW_S) == 0


def test_invalid_files_and_a_clock_set_back_do_not_block_checks(home: Path) -> None:
    summary_path(home, "rubbish").write_text("{")
    summary_path(home, "older release").write_text("{}")
    ended(home, "later", ago_s=-3_600)

    assert pause_left_s(home, "balance", NOW_S) == 0


def test_an_incremental_check_is_not_throttled_by_a_full_one_that_was_asked_for(home: Path) -> None:
    ended(home, "daily", ago_s=10)

    assert pause_left_s(home, "balance", NOW_S, Mode.INCREMENTAL) == 0

    ended(home, "first", ago_s=30, full_check_reason="no full check has verified the records yet")

    assert pause_left_s(home, "balance", NOW_S, Mode.INCREMENTAL) == pytest.approx(
        DURATION_S * PAUSE_FACTOR - 30
    )

    ended(home, "incremental", ago_s=20, mode="incremental")

    assert pause_left_s(home, "balance", NOW_S, Mode.INCREMENTAL) == pytest.approx(
        DURATION_S * PAUSE_FACTOR - 20
    )


def test_the_last_check_is_described(home: Path) -> None:
    assert last_check_text(home, "balance") == "It has not been checked yet."
    ended(home, "older", ago_s=100)
    ended(home, "newest", ago_s=0, mode="incremental")
    ended(home, "visits", ago_s=-10, read_model="visits")

    assert last_check_text(home, "balance") == (
        "Its last check (incremental) ended at 2027-01-15 08:00:00 UTC and could not be made."
    )
    path = summary_path(home, "newest")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"passed": True}))
    os.utime(path, (NOW_S, NOW_S))
    assert last_check_text(home, "balance").endswith("08:00:00 UTC and passed.")
