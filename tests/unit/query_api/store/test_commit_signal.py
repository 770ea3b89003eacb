"""Every backend tells the readers of a store that a commit is visible."""

import time
from pathlib import Path

import pytest

from query_api.store import commit_signal
from query_api.store.base import Change, ChangelogPosition, StoreWriter
from query_api.store.commit_signal import CommitWatch

TIMEOUT_S = 5.0


@pytest.fixture(params=["inotify", "by time"])
def watch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CommitWatch:
    """A watch of each kind; the second one is that of systems without inotify."""
    if request.param == "by time":
        monkeypatch.setattr(commit_signal, "_open_inotify", lambda: None)
    return CommitWatch()


def commit(writer: StoreWriter) -> None:
    writer.commit({0: [Change(b"key", 1, 0, b"value")]}, {0: ChangelogPosition(1, time.time())}, {})


def test_a_commit_is_announced(watch: CommitWatch, writer: StoreWriter, path: Path) -> None:
    assert watch.add(path)
    watch.next(0.0)

    for _ in range(3):
        assert watch.next(0.05) == set()
        commit(writer)
        assert watch.next(TIMEOUT_S) == {path}


def test_a_commit_that_nobody_waited_for_is_seen_later(
    watch: CommitWatch, writer: StoreWriter, path: Path
) -> None:
    assert watch.add(path)
    commit(writer)
    assert watch.add(path)

    assert watch.next(TIMEOUT_S) == {path}


def test_the_removal_of_a_store_is_announced_once(watch: CommitWatch, tmp_path: Path) -> None:
    path, new = tmp_path / "balance.v1", tmp_path / "new"
    path.mkdir()
    new.mkdir()
    assert watch.add(path)

    path.rename(tmp_path / "discarded")
    assert watch.next(TIMEOUT_S) == {path}
    assert watch.next(0.05) in ({path}, set()), "inotify confirms that it no longer watches"
    assert watch.next(0.05) == set()
    assert not watch.add(path)

    new.rename(path)
    assert watch.add(path)
    assert watch.next(0.05) == set()
    commit_signal.announce_commit(path)
    assert watch.next(TIMEOUT_S) == {path}


def test_a_store_that_does_not_exist_cannot_be_announced_or_watched(
    watch: CommitWatch, tmp_path: Path
) -> None:
    commit_signal.announce_commit(tmp_path / "nothing")

    assert not watch.add(tmp_path / "nothing")
