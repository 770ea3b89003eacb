"""Each HTTP server of a node has its own folder of counters, and the page of the callers' one shows those of the node's other one."""

import os
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict, mmap_key

from query_api import memory_folder
from query_api.listener import Role
from query_api.metrics.metric_folders import PURPOSE, create_folder, folders_of_node
from query_api.metrics.node_metrics import NodeReading, node_exposition

# No process has this id.
ENDED = 2**30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a node, with those of its servers."""
    monkeypatch.setattr(memory_folder, "SHARED_MEMORY", tmp_path / "memory")
    (tmp_path / "memory").mkdir()
    store = tmp_path / "store"
    store.mkdir()
    return memory_folder.memory_folder(store, PURPOSE)


def test_only_folders_of_servers_that_have_ended_are_removed(tmp_path: Path, folder: Path) -> None:
    # That of an earlier release has no role in its name.
    for name in (f"callers-{os.getpid()}", f"peers-{os.getppid()}", f"{os.getppid()}", f"peers-{ENDED}"):
        (folder / name).mkdir()
        (folder / name / "counter.db").touch()
    # Of an earlier release.
    (folder / "counter_1.db").touch()
    (folder / "status").mkdir()

    own = create_folder(tmp_path / "store", Role.CALLERS, os.getpid())

    kept = {f"peers-{os.getppid()}", f"{os.getppid()}"}
    assert {path.name for path in folder.iterdir()} == {f"callers-{os.getpid()}", *kept}
    assert own == folder / f"callers-{os.getpid()}"
    assert list(own.iterdir()) == []
    assert (folder / f"peers-{os.getppid()}" / "counter.db").exists()


def test_the_page_for_callers_counts_what_the_listener_for_nodes_serves(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, older, newest = f"callers-{os.getpid()}", "peers-1", f"peers-{os.getpid()}"
    for name, lookups in ((own, 3), (older, 100), (newest, 4), (f"peers-{ENDED}", 1000)):
        (folder / name).mkdir()
        counted = MmapedDict(str(folder / name / "counter_1.db"))  # type: ignore[no-untyped-call]  # the library has no types
        key = mmap_key("foldlake_lookups", "foldlake_lookups_total", ["outcome"], ["ok"], "Lookups.")
        counted.write_value(key, lookups, 0.0)  # type: ignore[no-untyped-call]  # the same
        counted.close()  # type: ignore[no-untyped-call]  # the same

    assert folders_of_node(folder / own) == [folder / own, folder / newest]
    assert folders_of_node(folder / newest) == [folder / newest]
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(folder / own))
    page = node_exposition(
        NodeReading(None, is_ready=True, reports=(), verified=(), checks=(), store_dir=tmp_path)
    ).decode()
    assert 'foldlake_lookups_total{outcome="ok"} 7.0' in page
