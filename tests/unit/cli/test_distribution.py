"""Tests that share fixtures run in one worker; the longest parts come first."""

from pathlib import Path

import pytest

from tests.distribution import STATIC, DurationRecorder, order_of, part_of, read_durations


@pytest.mark.parametrize(
    ("nodeid", "part"),
    [
        ("tests/unit/lake/test_lake.py::test_a[b/c]", "tests/unit/lake"),
        ("tests/unit/query_api/http/test_openapi.py::test_a", "tests/unit/query_api/http"),
        ("tests/integration/test_loading.py::test_a", "tests/integration/test_loading.py"),
        ("tests/integration/lake/test_compaction.py::test_a", "tests/integration/lake"),
        ("tests/integration/lake/names/test_hidden_names.py::test_a", "tests/integration/lake/*"),
    ],
)
def test_a_part_is_a_folder_or_a_module_that_shares_no_fixtures(nodeid: str, part: str) -> None:
    assert part_of(nodeid) == part


def test_static_checks_come_first_then_the_longest_part() -> None:
    durations = {"tests/unit/long": 100.0, "tests/unit/short": 1.0}
    tests = [f"{folder}/test_a.py::test_a" for folder in ("tests/unit/short", "tests/unit/long", STATIC)]

    assert sorted(tests, key=lambda test: order_of(test, durations)) == tests[::-1]


def test_recorded_durations_replace_those_of_the_parts_that_ran(tmp_path: Path) -> None:
    path = tmp_path / "durations.txt"
    path.write_text("7 tests/unit/other\n5 tests/unit/lake\n")
    recorder = DurationRecorder()
    for seconds in (4.5, 4.0):
        recorder.add("tests/unit/lake/test_lake.py::test_a", seconds)

    recorder.write(path)

    assert path.read_text() == "8 tests/unit/lake\n7 tests/unit/other\n"
    assert read_durations(path) == {"tests/unit/lake": 8.0, "tests/unit/other": 7.0}
