"""Each HTTP server of a node has its own folder of counters, so that a new one does not delete that of the one it replaces."""

import os
from pathlib import Path

import pytest

from query_api import memory_folder, server

# No process has this id.
ENDED = 2**30


def test_only_folders_of_servers_that_have_ended_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_folder, "SHARED_MEMORY", tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    store = tmp_path / "store"
    store.mkdir()
    folder = memory_folder.memory_folder(store, server.METRICS_DIRECTORY)
    for pid in (os.getpid(), os.getppid(), ENDED):
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "counter.db").touch()
    # Of an earlier release.
    (folder / "counter_1.db").touch()
    (folder / "status").mkdir()

    own = server._metrics_directory(store)

    assert {path.name for path in folder.iterdir()} == {str(os.getpid()), str(os.getppid())}
    assert own == folder / str(os.getpid())
    assert list(own.iterdir()) == []
    assert (folder / str(os.getppid()) / "counter.db").exists()
