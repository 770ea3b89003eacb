"""A directory is checked with files in it, which are removed; a file system that cannot do what Foldlake needs is named."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stack.doctor import folder_checks
from stack.doctor.finding import State
from stack.doctor.folder_checks import check_folder, file_system_type


def test_a_local_directory_is_ok_and_left_as_it_was(tmp_path: Path) -> None:
    finding = check_folder("folder", "FOLDLAKE_HOME", tmp_path / "not" / "yet", programs=True)

    assert finding.state is State.OK
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def without_programs(tmp_path: Path) -> Iterator[Path]:
    """A file system from which no program is executed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,noexec", "foldlake-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mount is not permitted")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_tools_need_a_file_system_that_executes_programs(without_programs: Path) -> None:
    tools = check_folder("folder", "FOLDLAKE_TOOLS", without_programs, programs=True)
    data = check_folder("folder", "FOLDLAKE_HOME", without_programs, programs=False)

    assert tools.state is State.PROBLEM
    assert "noexec" in tools.found
    assert "Set FOLDLAKE_TOOLS" in tools.action
    assert data.state is State.OK
    assert data.found.startswith("tmpfs")


def test_a_directory_that_cannot_be_written_is_a_problem() -> None:
    finding = check_folder("folder", "FOLDLAKE_HOME", Path("/proc/foldlake"), programs=False)

    assert finding.state is State.PROBLEM
    assert finding.found.startswith("/proc cannot be written: ")
    assert "Set FOLDLAKE_HOME" in finding.action


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_a_warning_for_data_only(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"36 35 {os.major(device)}:{os.minor(device)} / /data rw,noatime master:1 - {kind} server:/data rw\n"
    )
    monkeypatch.setattr(folder_checks, "MOUNTS", mounts)

    data = check_folder("folder", "FOLDLAKE_HOME", tmp_path, programs=False)
    tools = check_folder("folder", "FOLDLAKE_TOOLS", tmp_path, programs=True)

    assert (data.state, data.needed) == (State.WARNING, "a local disk")
    assert data.found.startswith(f"{kind}, a network file system")
    assert tools.state is State.OK


def test_without_a_list_of_mounts_the_type_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_checks, "MOUNTS", tmp_path / "none")

    assert file_system_type(tmp_path) == ""
