"""A backend is found by its folder's name; adding one requires only the folder. That of a placement is for shared stores only."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from include.errors import SettingsError
from query_api import store
from query_api.memory_folder import SHARED_MEMORY
from query_api.store import lmdb
from query_api.store.backends import backend_names, load_backend
from query_api.store.base import Change, ChangelogPosition
from tests.unit.query_api.store.store_process import node_settings


def test_unknown_backend_is_rejected_with_the_available_names() -> None:
    with pytest.raises(SettingsError, match=r"FOLDLAKE_NODE_STORE is 'rocksdb'.*: lmdb\."):
        load_backend(node_settings("rocksdb"))


def test_the_store_in_memory_of_earlier_releases_names_what_replaces_it() -> None:
    with pytest.raises(SettingsError, match="FOLDLAKE_NODE_STORE_DIR"):
        load_backend(node_settings("memory"))


@pytest.mark.skipif(not SHARED_MEMORY.is_dir(), reason="no file system in memory")
def test_a_store_can_be_on_a_file_system_in_memory() -> None:
    backend = load_backend(node_settings("lmdb"))
    with TemporaryDirectory(dir=SHARED_MEMORY) as folder:
        path = Path(folder) / "balance.v1"
        writer = backend.open_writer(path, 1)
        writer.commit({0: [Change(b"k", 1, 0, b"v")]}, {0: ChangelogPosition(1, 0.0)}, {})
        writer.close()
        assert backend.open_reader(path, 1).count(0) == 1


@pytest.mark.parametrize("name", ["base", "directory", "", "../lmdb", "lmdb.reader", "redis"])
def test_name_that_is_not_a_folder_is_rejected(name: str) -> None:
    with pytest.raises(SettingsError):
        load_backend(node_settings(name))


def test_new_folder_is_a_new_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "third"
    shutil.copytree(Path(lmdb.__file__).parent, folder)
    for module in folder.glob("*.py"):
        module.write_text(module.read_text().replace("query_api.store.lmdb", "query_api.store.third"))
    monkeypatch.setattr(store, "__path__", [*store.__path__, str(tmp_path)])

    assert backend_names() == ["lmdb", "redis", "third"]
    backend = load_backend(node_settings("third"))

    writer = backend.open_writer(tmp_path / "balance.v1", 1)
    writer.commit({0: [Change(b"k", 1, 0, b"v")]}, {0: ChangelogPosition(1, 0.0)}, {})
    writer.close()
    record = backend.open_reader(tmp_path / "balance.v1", 1).get(0, b"k")
    assert record is not None
    assert type(backend).__module__ == "query_api.store.third"
