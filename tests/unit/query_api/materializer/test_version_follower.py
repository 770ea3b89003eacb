"""A version's thread rejects an unusable store, and reports its last partitions while it ends."""

import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from unittest.mock import Mock

import pytest
from confluent_kafka import Consumer

from include import boot_clock
from include.boot_clock import Moment
from include.settings import Settings
from query_api.cluster.node_state import PartitionState
from query_api.errors import StoreUnusableError
from query_api.materializer import version_follower
from query_api.materializer.version_follower import VersionFollower, VersionReference
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import MAX_ATTEMPTS, StoreDirectory
from query_api.store.lmdb import LmdbBackend
from tests.support.waiting import wait_until

BINDING = Binding("cluster", "balance.v1.changelog", "topic id")
REFERENCE = VersionReference("balance", 1, 1, BINDING)
DEADLINE_S = 30.0
# Partition 0, and when its end was last confirmed.
READY = {0: Moment(500.0, 1000.0)}


@pytest.fixture
def directory(tmp_path: Path) -> StoreDirectory:
    return StoreDirectory(tmp_path, LmdbBackend(1024 * 1024))


@pytest.fixture
def filled(directory: StoreDirectory) -> StoreDirectory:
    store = directory.open_writer("balance", 1, 1, BINDING)
    store.commit({0: [Change(b"k", 1, 0, b"v")]}, {0: ChangelogPosition.at(1, Moment.now())}, {})
    directory.close_writer(store, "balance", 1)
    return directory


def start(directory: StoreDirectory, previously_ready: Mapping[int, Moment] = READY) -> VersionFollower:
    """Start a follower without a broker; it has the store's partitions."""
    settings = Settings.of(kafka_bootstrap="127.0.0.1:1")
    version = VersionFollower(
        settings, REFERENCE, directory, previously_ready=previously_ready, on_change=lambda: None
    )
    version.start()
    return version


@pytest.mark.parametrize("previously_ready", [{}, READY])
def test_unusable_store_is_left_for_the_materializer_to_remove(
    filled: StoreDirectory, previously_ready: dict[int, Moment]
) -> None:
    (filled.path("balance", 1) / "damaged").write_text("found by a reader")

    version = start(filled, previously_ready)
    version.join(DEADLINE_S)

    assert isinstance(version.failure, StoreUnusableError)
    assert filled.is_reported_damaged("balance", 1), "it is still there"


def test_no_empty_store_is_created_while_workers_assume_a_complete_one(directory: StoreDirectory) -> None:
    version = start(directory)
    version.join(DEADLINE_S)

    assert isinstance(version.failure, StoreUnusableError)
    assert directory.stored_versions() == []


def test_error_that_is_not_damage_is_not_counted_as_a_failed_open(
    filled: StoreDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_follower, "changelog_consumer", Mock(side_effect=RuntimeError("no consumer")))

    for _ in range(MAX_ATTEMPTS + 1):
        version = start(filled)
        version.join(DEADLINE_S)
        assert isinstance(version.failure, RuntimeError)


def test_check_before_use_is_reported_and_ends_with_the_follower(
    filled: StoreDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boot_id").write_text("another-boot")
    monkeypatch.setattr(boot_clock, "BOOT_ID", tmp_path / "boot_id")
    checker = tmp_path / "checker"
    checker.write_text("#!/bin/sh\necho 7 of 9 records\nexec sleep 3600\n")
    checker.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(checker))

    version = start(filled)
    wait_until(lambda: "(7 of 9 records)" in version.opening, "its progress is known", DEADLINE_S)
    assert version.partitions() is None

    version.end()
    version.join(DEADLINE_S)
    assert (version.is_alive(), version.failure) == (False, None)
    assert filled.stored_versions() == [("balance", 1)]


class SlowlyClosing(Consumer):
    """A consumer whose `close` returns only when the test allows it."""

    is_closed = threading.Event()
    may_return = threading.Event()

    def close(self) -> None:
        """Close, then wait."""
        super().close()
        self.is_closed.set()
        self.may_return.wait(DEADLINE_S)


@pytest.fixture
def slowly_closing(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[SlowlyClosing]]:
    monkeypatch.setattr(
        version_follower,
        "changelog_consumer",
        lambda kafka, _: SlowlyClosing({**kafka.client_settings, "group.id": "unused", "log_level": 0}),
    )
    SlowlyClosing.is_closed.clear()
    SlowlyClosing.may_return.clear()
    yield SlowlyClosing
    SlowlyClosing.may_return.set()


def test_partitions_can_be_read_while_the_follower_closes(
    filled: StoreDirectory, slowly_closing: type[SlowlyClosing]
) -> None:
    version = start(filled)
    wait_until(lambda: version.partitions() is not None, "it follows", DEADLINE_S)

    version.end()
    assert slowly_closing.is_closed.wait(DEADLINE_S)

    assert version.partitions() == {
        0: PartitionState(
            is_ready=True,
            end_offset=-1001,
            confirmed_at=1000.0,
            as_of=1000.0,
            confirmed_boot_s=500.0,
            as_of_boot_s=500.0,
        )
    }
    slowly_closing.may_return.set()
    version.join(DEADLINE_S)
    assert (version.is_alive(), version.failure) == (False, None)


@pytest.mark.parametrize(("discard", "ending"), [(False, "closed"), (True, "open")])
def test_store_is_synced_on_close_unless_it_will_be_removed(
    filled: StoreDirectory, ending: str, *, discard: bool
) -> None:
    version = start(filled)
    wait_until(lambda: version.partitions() is not None, "it follows", DEADLINE_S)

    version.end(discard=discard)
    version.join(DEADLINE_S)

    assert (filled.path("balance", 1) / "incarnation").read_text().split()[1:] == [ending, "0", "0"]
