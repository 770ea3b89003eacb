"""The materializer's loop: a signal stops it at any time, and it reuses the state that the previous process published."""

import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from include.settings import Settings
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.materializer import node_materializer as materializer_module
from query_api.materializer.node_materializer import Materializer

HELD = {0: PartitionState(is_ready=True)}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A node's settings; its Kafka clients are replaced by mocks."""
    for name in ("Membership", "ClusterObserver", "RegistryWatch"):
        monkeypatch.setattr(materializer_module, name, Mock())
    return Settings.of(home=tmp_path)


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
        NodeState(settings.node.name, settings.node.advertised_url, models=models, written_at=written_at),
    )

    materializer = Materializer(settings)
    materializer.stop()
    materializer.run()  # closes its open resources

    assert materializer._previous.models["balance"].versions[1].partitions == held
