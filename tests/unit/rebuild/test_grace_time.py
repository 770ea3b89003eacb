"""A previous version is kept for its grace time, whatever the wall clock is set to meanwhile."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include import boot_clock
from include.rebuild import grace_time
from include.rebuild.grace_time import grace_left_s
from include.settings import CHECKOUT
from include.versions.version_record import ReadModelVersions, Stage, Version
from tests.support.faults.wall_clock import wall_clock

HOUR_S, DAY_S = 3600.0, 86_400.0
NOW = datetime.now(UTC)
PREVIOUS = Version(
    1,
    Stage.PREVIOUS,
    1,
    "balance.v1.changelog",
    "",
    NOW.isoformat(),
    retire_after=(NOW + timedelta(days=1)).isoformat(),
    replaced_in=7,
    grace_s=DAY_S,
)
# Prints what is left of the version's grace time, as a task of the DAG `retirement` sees it.
TASK = """
import sys
from pathlib import Path
from include.rebuild.grace_time import grace_left_s
from include.versions.version_record import ReadModelVersions
(version,) = ReadModelVersions.from_json(Path(sys.argv[1], "record").read_bytes()).versions
print(grace_left_s(Path(sys.argv[1]), "balance", version))
"""


class Machine:
    """The machine's boot clock, which the test sets."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._directory, self._monkeypatch = directory, monkeypatch
        self.restart(after_s=0.0)

    def boot_s(self) -> float:
        """Return the seconds since the machine started."""
        return self.since_boot_s

    def restart(self, after_s: float) -> None:
        """Restart the machine, and let time pass."""
        path = self._directory / f"boot-{len(list(self._directory.iterdir()))}"
        path.write_text(path.name)
        self._monkeypatch.setattr(boot_clock, "BOOT_ID", path)
        self._monkeypatch.setattr(grace_time, "boot_s", self.boot_s)
        self.since_boot_s = after_s


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    boots = tmp_path / "boots"
    boots.mkdir()
    return Machine(boots, monkeypatch)


def left_h(home: Path, version: Version = PREVIOUS) -> float:
    return grace_left_s(home, "balance", version) / HOUR_S


@pytest.mark.parametrize("offset", ["+1h", "+1d", "+2d", "-1h", "-1d"])
def test_clock_that_is_set_retires_no_version_and_keeps_none_longer(tmp_path: Path, offset: str) -> None:
    (tmp_path / "clock").mkdir()
    clock = wall_clock(tmp_path / "clock")
    record = ReadModelVersions("balance", 7, (PREVIOUS,), NOW.isoformat())
    (tmp_path / "record").write_bytes(record.to_json())

    def task() -> float:
        path = os.pathsep.join((str(clock.python_path), str(CHECKOUT)))
        environment = {**os.environ, **clock.environment, "PYTHONPATH": path}
        command = [sys.executable, "-c", TASK, str(tmp_path)]
        return float(
            subprocess.run(command, env=environment, capture_output=True, check=True, timeout=60).stdout
        )

    before_s = task()
    clock.set_to(offset)

    assert DAY_S - 60.0 < task() < before_s <= DAY_S


def test_time_is_counted_by_tasks_that_run_one_after_another(tmp_path: Path, machine: Machine) -> None:
    assert left_h(tmp_path) == 24.0

    for hours, left in ((1, 23.0), (10, 14.0), (23.5, 0.5), (24, 0.0)):
        machine.since_boot_s = hours * HOUR_S
        assert left_h(tmp_path) == left


def test_time_in_which_the_machine_is_off_is_not_counted(tmp_path: Path, machine: Machine) -> None:
    left_h(tmp_path)
    machine.since_boot_s = 2 * HOUR_S
    left_h(tmp_path)

    machine.restart(after_s=HOUR_S)

    assert left_h(tmp_path) == 21.0


def test_version_that_is_replaced_again_is_kept_for_its_whole_grace_time(
    tmp_path: Path, machine: Machine
) -> None:
    left_h(tmp_path)
    machine.since_boot_s = 20 * HOUR_S
    left_h(tmp_path)

    assert left_h(tmp_path, replace(PREVIOUS, replaced_in=9)) == 24.0


@pytest.mark.parametrize("content", ["", "{", "[]", '{"balance/1": 5}', '{"balance/1": {}}'])
def test_unreadable_file_begins_the_count_again(tmp_path: Path, machine: Machine, content: str) -> None:
    left_h(tmp_path)
    machine.since_boot_s = HOUR_S
    (tmp_path / "rebuild" / "grace-times.json").write_text(content)

    assert left_h(tmp_path) == 24.0
    assert list(json.loads((tmp_path / "rebuild" / "grace-times.json").read_text())) == ["balance/1"]


def test_version_that_an_earlier_release_replaced_is_due_at_the_time_in_its_record(tmp_path: Path) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    version = replace(PREVIOUS, grace_s=None, retire_after=tomorrow.isoformat())

    assert 23.0 < left_h(tmp_path, version) <= 24.0
