"""A full disk is not damage: a store on it keeps its records, is never discarded, and is written again once there is space."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from query_api.errors import StoreDamagedError, StoreFullError, StoreUnusableError, StoreWriteError
from query_api.store.base import Binding, Change, ChangelogPosition, StoreWriter
from query_api.store.directory import MAX_ATTEMPTS, StoreDirectory
from query_api.store.lmdb import LmdbBackend
from query_api.store.marker import StoreLifecycle, read_marker, write_marker
from tests.support.faults.small_disk import SmallDisk, small_disk

BINDING = Binding("cluster", "balance.v1.changelog", "topic id")
AT = {0: ChangelogPosition(1, 0.0)}
BACKEND = LmdbBackend(1024 * 1024 * 1024)
# Takes as many readers' slots as a busy HTTP worker, and prints the record.
BUSY_READER = """
import sys
from pathlib import Path
from query_api.store.lmdb import layout
environment = layout.open_environment(Path(sys.argv[1]), map_size_bytes=2**30, partitions=1, readonly=True)
records = environment.open_db(b"p0", create=False)
transactions = [environment.begin(db=records) for _ in range(layout.MAX_READERS // 2)]
print(len(transactions), transactions[-1].get(b"k") is not None)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", size_mb=8) as mounted:
        yield mounted


@pytest.fixture
def directory(disk: SmallDisk) -> StoreDirectory:
    """Stores on the disk; version 1 has one record and was closed."""
    directory = StoreDirectory(disk.path, BACKEND)
    store = open_store(directory)
    store.commit({0: [Change(b"k", 1, 0, b"v")]}, AT, {})
    directory.close_writer(store, "balance", 1)
    return directory


def open_store(directory: StoreDirectory, version: int = 1) -> StoreWriter:
    return directory.open_writer("balance", version, 1, BINDING)


def grow(store: StoreWriter) -> None:
    """Write more than fits into the unused pages of a small store."""
    store.commit({0: [Change(b"%d" % n, 1, n, bytes(10_000)) for n in range(100)]}, AT, {})


def test_store_on_a_full_disk_is_opened_again_and_again_and_keeps_its_records(
    directory: StoreDirectory, disk: SmallDisk
) -> None:
    disk.fill()

    for _ in range(MAX_ATTEMPTS + 1):
        store = open_store(directory)
        with pytest.raises(StoreFullError, match="free space on its disk"):
            grow(store)
        assert store.record_count() == 1
        directory.close_writer(store, "balance", 1)
        assert read_marker(directory.path("balance", 1)) == StoreLifecycle().closed()

    disk.free()
    store = open_store(directory)
    grow(store)
    assert store.record_count() == 101
    store.close()


def test_same_write_succeeds_once_there_is_space(directory: StoreDirectory, disk: SmallDisk) -> None:
    store = open_store(directory)
    disk.fill()
    with pytest.raises(StoreFullError):
        grow(store)

    disk.free()

    grow(store)
    assert store.record_count() == 101
    store.close()


def test_failed_creation_of_a_store_on_a_full_disk_is_not_damage(
    directory: StoreDirectory, disk: SmallDisk
) -> None:
    disk.fill()

    for _ in range(MAX_ATTEMPTS + 1):
        with pytest.raises(StoreFullError):
            open_store(directory, 2)

    disk.free()
    try:
        open_store(directory, 2).close()
    except StoreUnusableError:  # an incomplete file of a store that never had a record
        directory.discard("balance", 2)
        open_store(directory, 2).close()


def test_opening_that_python_has_ended_is_not_counted(directory: StoreDirectory) -> None:
    path = directory.path("balance", 1)
    elsewhere = Binding("cluster", "balance.v1.changelog", "another")

    with pytest.raises(StoreUnusableError, match="filled from"):
        directory.open_writer("balance", 1, 1, elsewhere)

    assert read_marker(path).attempts == 0
    open_store(directory).close(sync=False)
    assert read_marker(path).attempts == 1, "as if its writer had been killed"


def test_readers_on_a_full_disk_are_not_killed(directory: StoreDirectory, disk: SmallDisk) -> None:
    store = open_store(directory)
    disk.fill()

    command = [sys.executable, "-c", BUSY_READER, str(directory.path("balance", 1))]
    reader = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (reader.returncode, reader.stdout) == (0, "1024 True\n"), reader.stderr
    store.close()


def test_damage_that_a_reader_finds_on_a_full_disk_is_recorded(
    directory: StoreDirectory, disk: SmallDisk
) -> None:
    disk.fill()

    directory.report_damage("balance", 1, StoreDamagedError.at(disk.path, "checksum"))

    assert directory.is_reported_damaged("balance", 1)


@pytest.mark.parametrize(
    ("command", "is_damage"), [("kill -9 $$", False), ("exit 1", False), ("kill -7 $$", True)]
)
def test_check_that_could_not_run_finds_no_damage(
    directory: StoreDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    *,
    is_damage: bool,
) -> None:
    checker = tmp_path / "checker"
    checker.write_text(f"#!/bin/sh\n{command}\n")
    checker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(checker))

    with pytest.raises(StoreUnusableError if is_damage else StoreWriteError):
        open_store(directory)


def test_marker_of_an_older_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "incarnation").write_text("a-boot-id closed")

    assert read_marker(tmp_path) == StoreLifecycle("a-boot-id", is_closed=True)


@pytest.mark.parametrize("content", ["", " ", "one-word"])
def test_store_without_a_readable_marker_has_not_survived(tmp_path: Path, content: str) -> None:
    (tmp_path / "incarnation").write_text(content)

    assert not read_marker(tmp_path).survived


def test_marker_is_replaced_on_a_full_disk(disk: SmallDisk) -> None:
    write_marker(disk.path, StoreLifecycle().closed())
    disk.fill()

    write_marker(disk.path, StoreLifecycle().opened(is_checked=True))

    assert read_marker(disk.path) == StoreLifecycle().opened(is_checked=True)
