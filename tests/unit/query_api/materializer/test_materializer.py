"""The materializer's loop: a signal stops it at any time, and it reuses the state that the previous process published."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from include.errors import KafkaUnavailableError
from include.settings import Settings
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.errors import StoreLockedError
from query_api.history.samples import FOLDER, read_history, write_history
from query_api.materializer import node_materializer as materializer_module
from query_api.materializer.node_materializer import Materializer
from query_api.memory_folder import memory_folders
from query_api.store.backends import store_directory
from query_api.store.directory import StoreDirectory
from tests.support.waiting import wait_until

HELD = {0: PartitionState(is_ready=True)}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A node's settings; its Kafka clients are replaced by mocks."""
    for name in ("Membership", "RegistryWatch"):
        monkeypatch.setattr(materializer_module, name, Mock())
    observer = Mock()
    observer.return_value.observe.side_effect = KafkaUnavailableError("is the broker up?")
    monkeypatch.setattr(materializer_module, "ClusterObserver", observer)
    return Settings.of(home=tmp_path)


@pytest.fixture
def present(settings: Settings) -> Iterator[StoreDirectory]:
    """The stores, whose lock another materializer has."""
    found = store_directory(settings, {})
    found.lock()
    yield found
    found.unlock()


def test_a_new_process_changes_nothing_until_the_present_one_has_ended(
    settings: Settings, present: StoreDirectory
) -> None:
    before = NodeState(settings.node.name, settings.advertised_url, written_at=time.time())
    node_state.write(settings.store_dir, before)
    materializer = Materializer(settings)
    materializer.observe()
    waiting = threading.Thread(target=materializer.run, kwargs={"waits": True})
    waiting.start()

    assert node_state.read(settings.store_dir) == before
    present.unlock()
    wait_until(lambda: node_state.read(settings.store_dir) != before, "it has published its own state")
    materializer.stop()
    waiting.join()


def test_a_process_that_waits_can_be_stopped(settings: Settings, present: StoreDirectory) -> None:
    materializer = Materializer(settings)
    waiting = threading.Thread(target=materializer.run, kwargs={"waits": True})
    waiting.start()

    materializer.stop()

    waiting.join(5)
    assert not waiting.is_alive()
    with pytest.raises(StoreLockedError):
        store_directory(settings, {}).lock()
    assert present.stored_versions() == []


def test_a_process_without_a_holder_does_not_wait(settings: Settings, present: StoreDirectory) -> None:
    assert present.stored_versions() == []
    with pytest.raises(StoreLockedError, match="FOLDLAKE_NODE_NAME"):
        Materializer(settings).run()


@pytest.mark.parametrize("is_replaced", [True, False])
def test_the_history_of_the_last_hour_is_kept_for_the_next_process(
    settings: Settings, *, is_replaced: bool
) -> None:
    write_history(settings.store_dir, read_history(settings.store_dir))
    materializer = Materializer(settings, is_replaced=lambda: is_replaced)
    materializer.stop()

    materializer.run()

    folders = memory_folders(settings.store_dir, FOLDER)
    assert any(folder.exists() for folder in folders) is is_replaced


def test_signal_that_comes_while_the_loop_waits_ends_it(settings: Settings) -> None:
    materializer = Materializer(settings)

    # The lock that the loop holds briefly inside `wait`: a handler runs in the same thread, and would deadlock.
    with vars(materializer._changed)["_cond"]:
        handler = threading.Thread(target=materializer.stop, daemon=True)
        handler.start()
        handler.join(5)
        assert not handler.is_alive()

    materializer.run()
    assert node_state.read(settings.store_dir) is None, "it has stopped before its first step"


@pytest.mark.parametrize(("age_s", "held"), [(1.0, HELD), (6.5, {})])
def test_readiness_survives_a_short_restart(
    settings: Settings, age_s: float, held: dict[int, PartitionState]
) -> None:
    version = VersionState(1, "live", "balance.v1.changelog", HELD)
    models = {"balance": ModelState("balance", "balance", 1, 1, 1, {1: version})}
    written_at = time.time() - age_s
    node_state.write(
        settings.store_dir,
        NodeState(settings.node.name, settings.advertised_url, models=models, written_at=written_at),
    )

    materializer = Materializer(settings)
    materializer.stop()
    materializer.run()  # closes its open resources

    assert materializer._previous.models["balance"].versions[1].partitions == held
