"""A version has one writer at a time, and a killed writer releases its lock."""

import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import CHECKOUT
from include.versions.version_lock import VersionLockedError, query_lock, version_lock

HOLD = """
import sys, time
from pathlib import Path
from include.versions.version_lock import version_lock
with version_lock(Path(sys.argv[1]), "balance", 2, wait_s=0):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(home: Path, *, wait_s: float) -> None:
    with version_lock(home, "balance", 2, wait_s=wait_s):
        pass


def test_second_writer_of_a_version_cannot_lock_it(tmp_path: Path) -> None:
    with (
        version_lock(tmp_path, "balance", 2, wait_s=0),
        pytest.raises(VersionLockedError, match="v2 of balance is still being written"),
    ):
        hold(tmp_path, wait_s=0.3)
    hold(tmp_path, wait_s=0)


def test_a_query_without_versions_has_one_writer(tmp_path: Path) -> None:
    with (
        query_lock(tmp_path, "route/a", wait_s=0),
        query_lock(tmp_path, "events.dead-letter", wait_s=0),
        pytest.raises(VersionLockedError, match="Query route/a is still run by process"),
        query_lock(tmp_path, "route/a", wait_s=0),
    ):
        pass
    with query_lock(tmp_path, "route/a", wait_s=0):
        pass


def test_other_versions_are_not_locked(tmp_path: Path) -> None:
    with (
        version_lock(tmp_path, "balance", 2, wait_s=0),
        version_lock(tmp_path, "balance", 3, wait_s=0),
    ):
        pass


def test_killed_writer_releases_its_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(VersionLockedError):
            hold(tmp_path, wait_s=0)
        holder.kill()
    hold(tmp_path, wait_s=5)
