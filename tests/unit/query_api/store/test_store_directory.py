"""A node's stores on disk: reused if they are complete and from the same changelog, rejected otherwise."""

from dataclasses import replace
from pathlib import Path

import pytest

from include import boot_clock
from query_api.errors import StoreLockedError, StoreUnusableError
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import MAX_ATTEMPTS, StoreDirectory
from query_api.store.lmdb import LmdbBackend

BINDING = Binding("cluster", "balance.v1.changelog", "topic id")


@pytest.fixture
def directory(tmp_path: Path) -> StoreDirectory:
    return StoreDirectory(tmp_path, LmdbBackend(1024 * 1024))


def fill(directory: StoreDirectory, *, cleanly: bool = True) -> None:
    store = directory.open_writer("balance", 1, 1, BINDING)
    store.commit({0: [Change(b"k", 1, 0, b"v")]}, {0: ChangelogPosition(1, 0.0)}, {})
    if cleanly:
        directory.close_writer(store, "balance", 1)
    else:
        store.close()


def is_reused(directory: StoreDirectory, binding: Binding | None = BINDING) -> bool:
    """Whether the store is opened with its record; a rejected store is left unchanged."""
    try:
        store = directory.open_writer("balance", 1, 1, binding)
    except StoreUnusableError:
        assert directory.stored_versions() == [("balance", 1)]
        return False
    carried_on = store.record_count() == 1
    directory.close_writer(store, "balance", 1)
    return carried_on


def test_store_of_the_same_changelog_is_reused(directory: StoreDirectory) -> None:
    fill(directory)

    assert is_reused(directory)
    assert is_reused(directory, binding=None)


@pytest.mark.parametrize("other", [replace(BINDING, topic_id="other"), replace(BINDING, cluster_id="other")])
def test_store_of_another_incarnation_of_the_changelog_is_rejected(
    directory: StoreDirectory, other: Binding
) -> None:
    fill(directory)

    assert not is_reused(directory, other)


def test_store_reported_damaged_is_rejected(directory: StoreDirectory) -> None:
    fill(directory)
    (directory.path("balance", 1) / "damaged").write_text("found by a reader")
    assert directory.is_reported_damaged("balance", 1)

    assert not is_reused(directory)
    directory.discard("balance", 1)
    fill(directory)
    assert not directory.is_reported_damaged("balance", 1)


def test_missing_store_is_created_only_if_no_worker_assumes_a_complete_one(
    directory: StoreDirectory,
) -> None:
    with pytest.raises(StoreUnusableError, match="does not exist"):
        directory.open_writer("balance", 1, 1, BINDING, may_create=False)
    assert directory.stored_versions() == []

    fill(directory)

    directory.open_writer("balance", 1, 1, BINDING, may_create=False).close()


def test_store_that_was_open_when_the_machine_restarted_is_replaced(
    directory: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(directory, cleanly=False)
    assert is_reused(directory), "a killed process loses nothing"
    fill(directory, cleanly=False)
    (tmp_path / "boot_id").write_text("another boot")
    monkeypatch.setattr(boot_clock, "BOOT_ID", tmp_path / "boot_id")

    assert not is_reused(directory)


def test_store_closed_before_the_machine_restarted_is_reused(
    directory: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(directory)
    (tmp_path / "boot_id").write_text("another boot")
    monkeypatch.setattr(boot_clock, "BOOT_ID", tmp_path / "boot_id")

    assert is_reused(directory)


def test_store_whose_writer_dies_repeatedly_is_rejected(directory: StoreDirectory) -> None:
    for _ in range(MAX_ATTEMPTS):
        fill(directory, cleanly=False)

    assert not is_reused(directory)


def test_discarded_store_is_gone_and_no_longer_listed(directory: StoreDirectory) -> None:
    fill(directory)
    assert directory.stored_versions() == [("balance", 1)]

    directory.discard("balance", 1)

    assert directory.stored_versions() == []


def test_second_writer_is_rejected(directory: StoreDirectory, tmp_path: Path) -> None:
    directory.lock()

    with pytest.raises(StoreLockedError, match="FOLDLAKE_NODE_NAME"):
        StoreDirectory(tmp_path, LmdbBackend(1024 * 1024)).lock()

    directory.unlock()
    successor = StoreDirectory(tmp_path, LmdbBackend(1024 * 1024))
    successor.lock()
    successor.unlock()
