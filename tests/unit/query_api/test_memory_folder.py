"""A node's folder in memory belongs to its user alone; where that cannot be, it is in the node's directory."""

from pathlib import Path

import pytest

from query_api import memory_folder as module
from query_api.memory_folder import is_private, memory_folder, memory_folders


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(module, "SHARED_MEMORY", folder)
    return folder


def test_the_folder_is_in_memory_private_and_the_same_for_all_processes(memory: Path, tmp_path: Path) -> None:
    store = tmp_path / "node-1"

    first, again = memory_folder(store, "history"), memory_folder(store, "history")

    assert first == again
    assert first.parent == memory
    assert is_private(first)
    assert memory_folders(store, "history") == (first, store / "history")


@pytest.mark.usefixtures("memory")
def test_each_node_and_each_purpose_has_its_own(tmp_path: Path) -> None:
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]

    found = {memory_folder(node, purpose) for node in nodes for purpose in ("history", "metrics")}

    assert len(found) == 4


@pytest.mark.usefixtures("memory")
def test_a_folder_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    store = tmp_path / "node-1"
    taken = memory_folder(store, "history")
    taken.chmod(0o755)

    assert memory_folder(store, "history") == store / "history"
    assert memory_folders(store, "history") == (store / "history",)


@pytest.mark.usefixtures("memory")
def test_a_link_is_not_used(tmp_path: Path) -> None:
    store, elsewhere = tmp_path / "node-1", tmp_path / "elsewhere"
    taken = memory_folder(store, "history")
    taken.rmdir()
    elsewhere.mkdir(mode=0o700)
    taken.symlink_to(elsewhere)

    assert memory_folder(store, "history") == store / "history"


def test_without_a_file_system_in_memory_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SHARED_MEMORY", tmp_path / "absent")

    assert memory_folder(tmp_path / "node-1", "history") == tmp_path / "node-1" / "history"
