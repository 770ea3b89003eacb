"""A worker decodes records with the store that it read them from, and closes every store that was removed from disk."""

import gc
import weakref
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest

from include.nodes.peers import Peers
from include.settings import Settings
from query_api.lookup import local_lookup
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookup_results import FailureReason, LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.store.base import Change
from query_api.store.lmdb import reader
from tests.support.waiting import wait_until
from tests.unit.query_api.balance_record import balance_value
from tests.unit.query_api.lookup.node_files import KEY, NodeFiles

DEADLINE_S = 10.0


@pytest.fixture
def node(settings: Settings) -> NodeFiles:
    node = NodeFiles(settings)
    for version in (1, 2):
        node.create_store(version, [Change(KEY, 3, 0, balance_value())])
    node.publish(1, 2)
    return node


@pytest.fixture
def local(settings: Settings, node: NodeFiles) -> LocalLookup:
    assert node is not None
    return LocalLookup(settings)


@pytest.fixture
def without_gc() -> Iterator[None]:
    """Disable garbage collection: a store must be closed as soon as its last reference is dropped."""
    gc.disable()
    yield
    gc.enable()


def is_closed(local: LocalLookup, version: int) -> Callable[[], bool]:
    """Open a version's store; return a function that tells whether it has been closed since."""
    location = local.locate("balance", KEY, version)
    store = weakref.ref(local.find(location).store)
    return lambda: store() is None


@pytest.mark.parametrize("is_new_one_there", [True, False])
def test_record_is_decoded_with_the_store_it_was_read_from(
    local: LocalLookup, node: NodeFiles, monkeypatch: pytest.MonkeyPatch, *, is_new_one_there: bool
) -> None:
    monkeypatch.setattr(reader, "CHECK_INTERVAL_S", 0.0)
    location = local.locate("balance", KEY)
    answer = local.find(location)
    page = local.page(location, b"", 10)

    if is_new_one_there:
        node.replace_store(1)
    else:
        node.remove_store(1)

    assert local.decode(answer).state == {"amount": Decimal("5.00")}
    assert [local.decoder(page)(record).position.offset for _, record in page.page.records] == [42]


@pytest.mark.usefixtures("without_gc")
def test_store_of_an_ended_version_is_closed_when_the_state_is_read(
    local: LocalLookup, node: NodeFiles
) -> None:
    retired, live = is_closed(local, 2), is_closed(local, 1)

    node.publish(1)

    wait_until(lambda: local.state() and retired(), "the store is closed", DEADLINE_S)
    assert not live()


@pytest.mark.usefixtures("without_gc")
def test_removed_store_is_closed_although_its_version_is_active(local: LocalLookup, node: NodeFiles) -> None:
    set_aside = is_closed(local, 2)

    node.remove_store(2)

    def is_noticed() -> bool:
        node.publish(1, 2)
        return local.state() is not None and set_aside()

    wait_until(is_noticed, "the store is closed", DEADLINE_S)


@pytest.mark.usefixtures("without_gc")
def test_worker_without_requests_closes_removed_stores(
    local: LocalLookup, node: NodeFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    retired = is_closed(local, 2)
    monkeypatch.setattr(local_lookup, "WATCH_INTERVAL_S", 0.05)
    local.watch()

    node.publish(1)

    wait_until(retired, "the store is closed", DEADLINE_S)


@pytest.mark.usefixtures("without_gc")
def test_failed_lookup_does_not_keep_the_store_open(local: LocalLookup, node: NodeFiles) -> None:
    removed = is_closed(local, 1)
    location = local.locate("balance", KEY)
    node.remove_store(1)

    def is_noticed() -> bool:
        try:
            Lookups(local, Peers()).answer(location, "/unused", None)
        except LookupFailedError as error:
            return error.reason is FailureReason.NOT_READY
        return False

    wait_until(is_noticed, "the store is gone", DEADLINE_S)
    assert removed()
