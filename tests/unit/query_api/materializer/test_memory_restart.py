"""A node with an in-memory store: workers read from the materializer's process, and after a restart nothing is ready.

The materializer's metadata requests to Kafka are stubbed, and its changelog consumer has no broker.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import pytest

from include.nodes.routing_table import RoutingTable
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from include.versions.version_record import first_version
from query_api.cluster import node_state
from query_api.cluster.cluster_observer import ClusterView, TopicFacts
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.lookup.key_location import KeyLocation
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_failures import FailureReason, LookupFailedError
from query_api.materializer import node_materializer
from query_api.materializer.node_materializer import Materializer
from query_api.store.base import ALL_RECORDS, Binding
from tests.support.waiting import wait_until
from tests.unit.query_api.balance_record import balance_value

DEADLINE_S = 30.0
KEY = b"you"
# Simulates a materializer that has read the changelog: stores one record, prints "filled", and waits.
PREVIOUS = """
import sys, time
from pathlib import Path
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import StoreDirectory
from query_api.store.memory.backend import MemoryBackend
directory = StoreDirectory(Path(sys.argv[1]), MemoryBackend())
directory.lock()
store = directory.open_writer("balance", 1, 1, Binding("c", "balance.v1.changelog", "t"))
value = bytes.fromhex(sys.argv[2])
store.commit({0: [Change(b"you", 3, 0, value)]}, {0: ChangelogPosition(1, time.time())}, {7: sys.argv[3]})
print("filled", flush=True)
time.sleep(60)
"""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A node's settings, and a cluster in which it owns the only partition of `balance`."""
    settings = Settings.of(home=tmp_path, kafka_bootstrap="127.0.0.1:1", node_store="memory")
    url = settings.node.advertised_url
    topics = {
        "balance": TopicFacts(Binding("c", "balance", "s"), 1),
        "balance.v1.changelog": TopicFacts(Binding("c", "balance.v1.changelog", "t"), 1),
    }
    view = ClusterView(
        {"balance": first_version("balance", 1)}, topics, RoutingTable({("balance", 0): url}, {url: "node-1"})
    )
    monkeypatch.setattr(node_materializer, "ClusterObserver", lambda *_: Mock(observe=lambda: view))
    monkeypatch.setattr(node_materializer, "RegistryWatch", lambda *_: Mock(run_once=lambda: time.sleep(0.1)))
    membership = Mock(assigned=frozenset({("balance", 0)}), has_joined=True, run_once=lambda: time.sleep(0.1))
    monkeypatch.setattr(node_materializer, "Membership", lambda *_: membership)
    return settings


def publish_ready(settings: Settings) -> None:
    """Publish that partition 0 is ready, as the previous process does."""
    url = settings.node.advertised_url
    version = VersionState(1, "live", "balance.v1.changelog", {0: PartitionState(is_ready=True)})
    model = ModelState("balance", "balance", 1, 1, 1, {1: version}, frozenset({0}), owners={0: url})
    state = NodeState(settings.node.name, url, models={"balance": model}, written_at=time.time())
    node_state.write(settings.store_dir, state)


@contextmanager
def previous_process(settings: Settings, value: bytes) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", PREVIOUS, str(settings.store_dir), value.hex()]
    with subprocess.Popen([*command, READ_MODEL.state_schema.text], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"filled\n"
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def materializer(settings: Settings) -> Iterator[None]:
    running = Materializer(settings)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        running.stop()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


def failure_of(local: LocalLookup, place: KeyLocation) -> FailureReason | None:
    try:
        local.find(place)
    except LookupFailedError as error:
        return error.reason
    return None


def state_of_partition(settings: Settings) -> PartitionState | None:
    state = node_state.read(settings.store_dir)
    return None if state is None else state.models["balance"].versions[1].partitions.get(0)


def test_restarted_node_has_nothing_ready_and_never_reports_a_key_as_unknown(settings: Settings) -> None:
    with previous_process(settings, balance_value()) as process:
        publish_ready(settings)
        local = LocalLookup(settings)
        place = local.place("balance", KEY)
        assert local.find(place).raw["source_offset"] == 42
        listed = local.page(place, b"", 10, ALL_RECORDS)
        assert [key for key, _ in listed.page.records] == [KEY]
        assert set(local.positions(place.model, 1)) == {0}

        process.kill()
        process.wait()
        assert failure_of(local, place) is FailureReason.NOT_READY

    publish_ready(settings)  # its last heartbeat
    seen: set[FailureReason | None] = set()
    with materializer(settings):

        def is_followed_from_the_beginning() -> bool:
            seen.add(failure_of(local, local.place("balance", KEY)))
            partition = state_of_partition(settings)
            return partition is not None and not partition.is_ready

        wait_until(is_followed_from_the_beginning, "the changelog is read from the beginning", DEADLINE_S)
        seen.add(failure_of(local, local.place("balance", KEY)))
    assert seen == {FailureReason.NOT_READY}
