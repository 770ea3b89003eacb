"""File locks and atomic writes: a lock has one holder and is released when it ends; readers see whole files."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.files import (
    FileLock,
    FileLockedError,
    file_lock,
    holder_of,
    is_locked,
    write_atomically,
    write_without_space,
)
from include.settings import CHECKOUT
from tests.support.faults.small_disk import SmallDisk, small_disk
from tests.support.repetition import repeated

# argv: the file, and whether the lock survives the exec of `sleep`.
HOLDER = """
import os, sys
from pathlib import Path
from include.files import FileLock
FileLock(Path(sys.argv[1]), survives_exec=sys.argv[2] == "True").acquire(wait_s=0)
print("locked", flush=True)
os.execvp("sh", ["sh", "-c", "echo executed; exec sleep 600"])
"""


def test_a_second_holder_fails_and_names_the_first(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with (
        file_lock(path, note="the first"),
        pytest.raises(FileLockedError, match="locked by the first"),
        file_lock(path, wait_s=0.3),
    ):
        pass


def test_a_released_lock_is_free(tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "lock")
    assert lock.try_acquire()
    assert is_locked(lock.path)
    lock.release()
    lock.release()

    assert not is_locked(lock.path)
    with file_lock(lock.path):
        assert is_locked(lock.path)


def test_a_file_that_does_not_exist_is_not_locked(tmp_path: Path) -> None:
    assert not is_locked(tmp_path / "lock")
    assert holder_of(tmp_path / "lock") == ""


def test_the_callers_error_replaces_only_the_locks_error(tmp_path: Path) -> None:
    def error(locked: FileLockedError) -> RuntimeError:
        return RuntimeError(f"busy: {locked.holder}")

    with (
        file_lock(tmp_path / "lock", note="7"),
        pytest.raises(RuntimeError, match="busy: 7"),
        file_lock(tmp_path / "lock", error=error),
    ):
        pass
    with pytest.raises(FileLockedError), file_lock(tmp_path / "other", error=error):
        raise FileLockedError(tmp_path, "")


@pytest.mark.parametrize("survives_exec", [True, False])
def test_a_lock_survives_an_exec_only_if_requested(tmp_path: Path, *, survives_exec: bool) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(path), str(survives_exec)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert [process.stdout.readline() for _ in range(2)] == ["locked\n", "executed\n"]

            assert is_locked(path) is survives_exec
            assert holder_of(path) == str(process.pid)
        finally:
            process.kill()
    with file_lock(path, wait_s=10):
        pass


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mb=1) as mounted:
        yield mounted


def test_file_is_replaced_on_a_full_disk_if_it_fits(disk: SmallDisk) -> None:
    path = disk.path / "file"
    write_without_space(path, b"first", reserve=16)
    disk.fill()

    write_without_space(path, b"the second", reserve=16)
    assert path.read_bytes() == b"the second".ljust(16)
    with pytest.raises(OSError, match="No space left"):
        write_without_space(path, b"longer than its reserve", reserve=16)
    with pytest.raises(OSError, match="No space left"):
        write_without_space(disk.path / "another", b"first", reserve=16)
    assert path.read_bytes() == b"the second".ljust(16), "a write that fails changes nothing"

    disk.free()
    write_without_space(path, b"longer than its reserve", reserve=16)
    assert path.read_bytes() == b"longer than its reserve".ljust(32)
    assert [file.name for file in disk.path.iterdir()] == ["file"]


def test_lock_is_taken_on_a_full_disk(disk: SmallDisk) -> None:
    disk.fill()

    with file_lock(disk.path / "lock"):
        assert is_locked(disk.path / "lock")


def test_readers_see_whole_contents_while_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "file"
    contents = {"a" * 100_000, "b" * 200_000}
    write_atomically(path, "a" * 100_000)

    def replace() -> None:
        for content in contents:
            write_atomically(path, content)

    with repeated(replace):
        assert {path.read_text() for _ in range(500)} <= contents
    assert [file.name for file in path.parent.iterdir()] == ["file"]
