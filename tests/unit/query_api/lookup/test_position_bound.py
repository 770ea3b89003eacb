"""A lookup that waits reads its key once for each commit, and no more than a few wait at the same time."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from query_api.lookup.client_slots import ClientSlots, NoFreeSlotError
from query_api.lookup.position_bound import CommitWait
from query_api.store.commit_signal import announce_commit

TIMEOUT_S = 5.0
CLIENT = "10.0.0.1"


class Counter:
    """A value in a store, and how often it was read."""

    def __init__(self) -> None:
        self.value = 0
        self.reads = 0
        self.read_once = threading.Event()

    def read(self) -> int:
        """Return the value."""
        self.reads += 1
        self.read_once.set()
        return self.value


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "balance.v1"
    path.mkdir()
    return path


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


@pytest.fixture
def waits() -> CommitWait:
    return CommitWait(ClientSlots(4, client_share=0.5))


def test_a_commit_ends_the_wait(waits: CommitWait, store: Path, executor: ThreadPoolExecutor) -> None:
    counter = Counter()
    waiting = executor.submit(waits.first, store, CLIENT, counter.read, lambda value: value == 2, TIMEOUT_S)
    for value in (1, 2):
        assert counter.read_once.wait(TIMEOUT_S)
        counter.read_once.clear()
        counter.value = value
        announce_commit(store)

    assert waiting.result() == 2
    assert counter.reads == 3


def test_without_a_commit_the_key_is_read_at_the_beginning_and_at_the_end(
    waits: CommitWait, store: Path
) -> None:
    counter = Counter()

    assert waits.first(store, CLIENT, counter.read, lambda value: value > 0, 0.3) == 0
    assert counter.reads == 2


def test_a_second_lookup_is_woken_after_the_first_has_ended(waits: CommitWait, store: Path) -> None:
    test_without_a_commit_the_key_is_read_at_the_beginning_and_at_the_end(waits, store)
    with ThreadPoolExecutor(1) as executor:
        test_a_commit_ends_the_wait(waits, store, executor)


def test_the_replacement_of_a_store_wakes_its_lookups(
    waits: CommitWait, store: Path, executor: ThreadPoolExecutor
) -> None:
    counter = Counter()
    waiting = executor.submit(waits.first, store, CLIENT, counter.read, lambda value: value == 1, TIMEOUT_S)
    assert counter.read_once.wait(TIMEOUT_S)
    store.rename(store.with_name("balance.v1.discarded"))
    store.mkdir()
    counter.value = 1
    announce_commit(store)

    began = time.monotonic()
    assert waiting.result() == 1
    assert time.monotonic() - began < TIMEOUT_S / 2


def test_a_lookup_waits_for_a_store_that_does_not_exist_yet(
    waits: CommitWait, tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    counter = Counter()
    path = tmp_path / "balance.v2"
    waiting = executor.submit(waits.first, path, CLIENT, counter.read, lambda value: value == 1, TIMEOUT_S)
    assert counter.read_once.wait(TIMEOUT_S)
    path.mkdir()
    counter.value = 1

    assert waiting.result() == 1


def test_one_client_takes_its_share_and_all_together_the_total() -> None:
    slots = ClientSlots(4, client_share=0.5)
    with slots.slot("a"), slots.slot("a"):
        with pytest.raises(NoFreeSlotError, match="2 requests of this client"), slots.slot("a"):
            pass
        with (
            slots.slot("b"),
            slots.slot("c"),
            pytest.raises(NoFreeSlotError, match="4 requests"),
            slots.slot("d"),
        ):
            pass
        with slots.slot("b"):
            pass


def test_an_error_of_the_reading_ends_the_wait_and_frees_its_slot(waits: CommitWait, store: Path) -> None:
    def read() -> int:
        raise LookupError

    for _ in range(10):
        with pytest.raises(LookupError):
            waits.first(store, CLIENT, read, bool, TIMEOUT_S)
