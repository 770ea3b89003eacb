"""A worker decodes records with the store that it read them from, and closes every store that was removed from disk."""

import gc
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from include.kafka.wire_format import header
from include.nodes.peers import Peers
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.lookup import local_lookup
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_failures import FailureReason, LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.store import replacement
from query_api.store.base import Binding, Change, ChangelogPosition, Sample
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb.backend import LmdbBackend
from tests.support.waiting import wait_until

KEY = b"you"
RECORD = {
    "amount": Decimal("5.00"),
    "event_count": 3,
    "source_partition": 0,
    "source_offset": 42,
    "occurred_on": datetime(2026, 1, 2, tzinfo=UTC),
}
SCHEMA_ID = 7
DEADLINE_S = 10.0


def value() -> bytes:
    buffer = BytesIO()
    buffer.write(header(SCHEMA_ID))
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(READ_MODEL.state_schema.parsed()), RECORD)
    return buffer.getvalue()


class Node:
    """A node's files, as its materializer writes them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = StoreDirectory(settings.store_dir, LmdbBackend(64 * 1024 * 1024))

    def create_store(self, version: int, changes: list[Change]) -> None:
        """Create a version's store; if it has records, with their schema."""
        changelog = Binding("cluster", f"balance.v{version}.changelog", "topic id")
        store = self._directory.open_writer("balance", version, 1, changelog)
        if changes:
            schemas = {SCHEMA_ID: READ_MODEL.state_schema.text}
            store.commit({0: changes}, {0: ChangelogPosition(len(changes), time.time())}, schemas)
        store.close()

    def remove_store(self, version: int) -> None:
        """Remove a version's store."""
        self._directory.discard("balance", version)

    def replace_store(self, version: int) -> None:
        """Replace a version's store with an empty one."""
        self.remove_store(version)
        self.create_store(version, [])

    def publish(self, *versions: int) -> None:
        """Write the node's state: it stores these versions, the first of which is live."""
        held = {
            n: VersionState(n, "live", f"balance.v{n}.changelog", {0: PartitionState(is_ready=True)})
            for n in versions
        }
        url = self._settings.node.advertised_url
        model = ModelState("balance", "balance", 1, 1, versions[0], held, frozenset({0}), owners={0: url})
        state = NodeState(self._settings.node.name, url, models={"balance": model})
        node_state.write(self._settings.store_dir, replace(state, written_at=time.time()))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.of(home=tmp_path)


@pytest.fixture
def node(settings: Settings) -> Node:
    node = Node(settings)
    for version in (1, 2):
        node.create_store(version, [Change(KEY, 3, 0, value())])
    node.publish(1, 2)
    return node


@pytest.fixture
def local(settings: Settings, node: Node) -> LocalLookup:
    assert node is not None
    return LocalLookup(settings.store_dir, settings.node)


@pytest.fixture
def without_gc() -> Iterator[None]:
    """Disable garbage collection: a store must be closed as soon as its last reference is dropped."""
    gc.disable()
    yield
    gc.enable()


def is_closed(local: LocalLookup, version: int) -> Callable[[], bool]:
    """Open a version's store; return a function that tells whether it has been closed since."""
    place = local.place("balance", KEY, version)
    store = weakref.ref(local.find(place).store)
    return lambda: store() is None


@pytest.mark.parametrize("is_new_one_there", [True, False])
def test_record_is_decoded_with_the_store_it_was_read_from(
    local: LocalLookup, node: Node, monkeypatch: pytest.MonkeyPatch, *, is_new_one_there: bool
) -> None:
    monkeypatch.setattr(replacement, "CHECK_INTERVAL_S", 0.0)
    place = local.place("balance", KEY)
    answer = local.find(place)
    page = local.page(place, b"", 10, Sample())

    if is_new_one_there:
        node.replace_store(1)
    else:
        node.remove_store(1)

    assert local.decode(answer).state == {"amount": Decimal("5.00")}
    assert [local.decoder(page)(record).position.offset for _, record in page.page.records] == [42]


@pytest.mark.usefixtures("without_gc")
def test_store_of_an_ended_version_is_closed_when_the_state_is_read(local: LocalLookup, node: Node) -> None:
    retired, live = is_closed(local, 2), is_closed(local, 1)

    node.publish(1)

    wait_until(lambda: local.state() and retired(), "the store is closed", DEADLINE_S)
    assert not live()


@pytest.mark.usefixtures("without_gc")
def test_removed_store_is_closed_although_its_version_is_active(local: LocalLookup, node: Node) -> None:
    set_aside = is_closed(local, 2)

    node.remove_store(2)

    def is_noticed() -> bool:
        node.publish(1, 2)
        return local.state() is not None and set_aside()

    wait_until(is_noticed, "the store is closed", DEADLINE_S)


@pytest.mark.usefixtures("without_gc")
def test_worker_without_requests_closes_removed_stores(
    local: LocalLookup, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    retired = is_closed(local, 2)
    monkeypatch.setattr(local_lookup, "WATCH_INTERVAL_S", 0.05)
    local.watch()

    node.publish(1)

    wait_until(retired, "the store is closed", DEADLINE_S)


@pytest.mark.usefixtures("without_gc")
def test_failed_lookup_does_not_keep_the_store_open(local: LocalLookup, node: Node) -> None:
    removed = is_closed(local, 1)
    place = local.place("balance", KEY)
    node.remove_store(1)

    def is_noticed() -> bool:
        try:
            Lookups(local, Peers()).answer(place, "/unused", None)
        except LookupFailedError as error:
            return error.reason is FailureReason.NOT_READY
        return False

    wait_until(is_noticed, "the store is gone", DEADLINE_S)
    assert removed()
