"""After a restart, an intact store is used again, however large it is; damage is found while the store is in use."""

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from include import boot_clock
from query_api.errors import FollowingStoppedError, StoreUnusableError
from query_api.store import background_check
from query_api.store.background_check import BackgroundCheck
from query_api.store.base import Binding, Change, ChangelogPosition, StoreWriter
from query_api.store.directory import MAX_UNCHECKED, StoreDirectory
from query_api.store.lmdb import LmdbBackend
from query_api.store.marker import read_marker
from tests.support.waiting import wait_until

BINDING = Binding("cluster", "balance.v1.changelog", "topic id")
VALUE = b"the value of the record"
# More than a check reads in one transaction.
RECORDS = 25_000
SECONDS_OF_A_LARGE_STORE = 3.0
LONGEST_OPENING_S = 60.0
# Without a process of its own, which would survive the check.
ENDLESS = "exec sleep 3600"


@pytest.fixture
def directory(tmp_path: Path) -> StoreDirectory:
    """Stores; the writer of version 1 was killed after it had written some records."""
    directory = StoreDirectory(tmp_path, LmdbBackend(64 * 1024 * 1024))
    store = directory.open_writer("balance", 1, 1, BINDING)
    changes = [Change(b"%06d" % n, 1, n, VALUE) for n in range(RECORDS)]
    store.commit({0: changes}, {0: ChangelogPosition(RECORDS, 0.0)}, {1: "{}"})
    store.close(sync=False)
    return directory


def reopen(directory: StoreDirectory, while_checking: Callable[[str], None] = lambda _: None) -> StoreWriter:
    return directory.open_writer("balance", 1, 1, BINDING, while_checking=while_checking)


def restart_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("another-boot")
    monkeypatch.setattr(boot_clock, "BOOT_ID", tmp_path / "boot_id")


def damage_record(directory: StoreDirectory, key: bytes) -> None:
    """Change a byte of the value in every copy of a record, also in copies on unused pages."""
    path = directory.path("balance", 1) / "data.mdb"
    content = bytearray(path.read_bytes())
    at = content.find(key)
    assert at >= 0
    while at >= 0:
        value_at = content.find(VALUE, at)
        content[value_at] = 0xFF
        at = content.find(key, value_at)
    path.write_bytes(content)


def checked(directory: StoreDirectory) -> BackgroundCheck:
    """Check the records of the open store as its follower does, and return the check when it is over."""
    check = BackgroundCheck(directory, "balance", 1)

    def is_over() -> bool:
        check.step()
        return check.is_over

    wait_until(is_over, "all records are checked", 60)
    return check


def slow_down(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *extents: str,
    command: str = f"sleep {SECONDS_OF_A_LARGE_STORE}",
) -> None:
    """Make checks of these extents take as long as those of a large store."""
    checker = tmp_path / "checker"
    python = shlex.quote(sys.executable)
    checker.write_text(
        f"#!/bin/sh\nfor extent in {' '.join(extents)}; do\n"
        f'case " $* " in *" $extent "*) {command};; esac\ndone\nexec {python} "$@"\n'
    )
    checker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(checker))


def test_store_whose_writer_was_killed_is_used_at_once_and_checked_meanwhile(
    directory: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch, tmp_path, "everything", "in-use", command=ENDLESS)

    # A check of all records would never end.
    began_s = time.monotonic()

    def fail_late(progress: str) -> None:
        assert time.monotonic() - began_s < LONGEST_OPENING_S, f"it is checked first: {progress}"

    store = reopen(directory, fail_late)
    check = BackgroundCheck(directory, "balance", 1)
    check.step()
    store.commit({0: [Change(b"new", 1, RECORDS, VALUE)]}, {0: ChangelogPosition(RECORDS + 1, 0.0)}, {})

    check.step()
    assert (store.record_count(), check.is_over) == (RECORDS + 1, False)
    check.stop()
    store.close()


def test_check_that_takes_long_is_not_damage(
    directory: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.close_writer(reopen(directory), "balance", 1)
    restart_machine(monkeypatch, tmp_path)
    slow_down(monkeypatch, tmp_path, "everything")
    calls: list[str] = []

    store = reopen(directory, while_checking=calls.append)

    assert store.record_count() == RECORDS
    assert len(calls) >= 2, "the follower learns that the check goes on"
    assert read_marker(directory.path("balance", 1)).unchecked == 0, "it need not be checked again"
    store.close()


def test_check_before_use_can_be_ended(
    directory: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.close_writer(reopen(directory), "balance", 1)
    restart_machine(monkeypatch, tmp_path)
    slow_down(monkeypatch, tmp_path, "everything", command=ENDLESS)

    def stop(_: str) -> None:
        raise FollowingStoppedError("the node stops")

    with pytest.raises(FollowingStoppedError):
        reopen(directory, while_checking=stop)

    assert directory.stored_versions() == [("balance", 1)]


def test_store_that_is_written_meanwhile_is_found_intact(directory: StoreDirectory) -> None:
    store = reopen(directory)
    check = BackgroundCheck(directory, "balance", 1)
    rounds = 0
    while not check.is_over:
        rounds += 1
        changes = [Change(b"%06d" % (n * 7), rounds + 1, RECORDS + rounds, VALUE * 3) for n in range(1000)]
        deletions = [Change(b"%06d" % (n * 7 + 1), 0, RECORDS + rounds, None) for n in range(rounds)]
        store.commit({0: changes + deletions}, {0: ChangelogPosition(RECORDS + rounds + 1, 0.0)}, {})
        store.housekeep()
        check.step()

    assert not directory.is_reported_damaged("balance", 1)
    assert read_marker(directory.path("balance", 1)).unchecked == 0
    store.close()


@pytest.mark.parametrize("key", [b"000001", b"012345", b"024998"])
def test_damage_that_no_reader_has_met_is_found_while_the_store_is_in_use(
    directory: StoreDirectory, key: bytes
) -> None:
    damage_record(directory, key)

    store = reopen(directory)
    checked(directory)

    assert directory.is_reported_damaged("balance", 1)
    assert "checksum" in (directory.path("balance", 1) / "damaged").read_text()
    store.close()


def test_check_that_could_not_run_is_repeated(
    directory: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_check, "RETRY_S", 0.0)
    marker_file = tmp_path / "was-killed"
    checker = tmp_path / "checker"
    checker.write_text(
        f'#!/bin/sh\ncase "$*" in *in-use*) mkdir {marker_file} && kill -9 $$;; esac\nexec {sys.executable} "$@"\n'
    )
    checker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(checker))

    store = reopen(directory)
    checked(directory)

    assert marker_file.exists()
    assert not directory.is_reported_damaged("balance", 1)
    assert read_marker(directory.path("balance", 1)).unchecked == 0
    store.close()


def test_store_whose_writer_is_killed_before_each_check_ends_is_checked_before_use(
    directory: StoreDirectory,
) -> None:
    for _ in range(MAX_UNCHECKED):
        store = reopen(directory)
        directory.reset_attempts("balance", 1)  # it has worked for a while
        store.close(sync=False)
    damage_record(directory, b"012345")

    with pytest.raises(StoreUnusableError, match="checksum"):
        reopen(directory)


def test_store_that_its_writer_has_closed_begins_a_new_count(
    directory: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A check of all records before it is opened would fail.
    slow_down(monkeypatch, tmp_path, "everything", command="exit 1")
    for _ in range(MAX_UNCHECKED + 1):
        directory.abandon_writer(reopen(directory), "balance", 1)

    store = reopen(directory)
    checked(directory)
    store.close()
