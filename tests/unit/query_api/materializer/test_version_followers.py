"""Followers start and end as the cluster requires; a store is removed only after no worker answers from it."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pytest

from include.versions.version_record import Stage, Version, first_version
from query_api.cluster.cluster_observer import ClusterView, TopicFacts
from query_api.cluster.node_state import PartitionState
from query_api.errors import ServerWriteError, StoreDamagedError, StoreFullError
from query_api.materializer import version_followers
from query_api.materializer.version_follower import VersionFollower, VersionReference
from query_api.materializer.version_followers import Key, VersionFollowers
from query_api.store.base import Binding
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb import LmdbBackend

LIVE, CANDIDATE = ("balance", 1), ("balance", 2)
FULL = str(StoreFullError.at(Path("/nodes/node-1/balance.v2"), "0 bytes are left on its disk"))


@dataclass
class Thread:
    """A version's thread that ends when the test ends it."""

    reference: VersionReference
    failure: Exception | None = None
    records: int = 0
    bad_records: int = 0
    copied_records: int = 0
    write_error: str = ""
    opening: str = ""
    is_ready: bool = True
    is_running: bool = True
    ended_with_discard: bool | None = None

    def partitions(self) -> dict[int, PartitionState] | None:
        """Return one partition."""
        return {0: PartitionState(is_ready=self.is_ready)}

    def end(self, *, discard: bool = False) -> None:
        """Record the request."""
        self.ended_with_discard = discard

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.is_running

    def join(self, timeout: float | None = None) -> None:
        """Fail: the calling thread publishes the node's heartbeat."""
        raise AssertionError(timeout)


@dataclass
class Node:
    """The followers of one node and their stores; records which versions were started and forgotten."""

    directory: StoreDirectory
    started: list[Thread] = field(default_factory=list)
    forgotten: list[Key] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Create the followers."""
        self.versions = VersionFollowers(
            self.directory,
            cast("Callable[[VersionReference], VersionFollower]", self._start),
            self.forgotten.append,
        )

    def _start(self, reference: VersionReference) -> Thread:
        self.directory.open_writer(reference.model, reference.number, 1, reference.binding).close()
        self.started.append(Thread(reference))
        return self.started[-1]

    def step(self, view: ClusterView) -> None:
        """Reconcile once and publish the state."""
        self.versions.step(view)
        self.versions.state_published()

    def started_of(self, key: Key) -> list[Thread]:
        """Return every thread that was started for a version."""
        return [t for t in self.started if (t.reference.model, t.reference.number) == key]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(version_followers, "STATE_PROPAGATION_S", 0.0)
    return Node(StoreDirectory(tmp_path, LmdbBackend(1024 * 1024)))


def view_of(stage: Stage, live: int = 1) -> ClusterView:
    """Return a cluster in which one of versions 1 and 2 is live, and the other one is at `stage`."""
    record = first_version("balance", 1)
    first = replace(record.versions[0], stage=Stage.LIVE if live == 1 else Stage.PREVIOUS)
    second = Version(2, stage, 1, "balance.v2.changelog", "", "")
    names = ("balance.v1.changelog", "balance.v2.changelog")
    topics = {name: TopicFacts(Binding("c", name, "t"), 1) for name in names}
    return ClusterView({"balance": replace(record, versions=(first, second))}, topics)


BESIDE = view_of(Stage.CANDIDATE)


def test_active_versions_are_started_once(node: Node) -> None:
    node.step(BESIDE)
    node.step(BESIDE)

    assert list(node.versions.running) == [LIVE, CANDIDATE]
    assert len(node.started) == 2


def test_abandoned_version_is_ended_without_waiting(node: Node) -> None:
    node.step(BESIDE)
    candidate = node.started_of(CANDIDATE)[0]

    for _ in range(3):
        node.step(view_of(Stage.ABANDONED))

    assert candidate.ended_with_discard is True
    assert (list(node.versions.running), node.forgotten) == ([LIVE], [CANDIDATE])
    assert node.directory.stored_versions() == [LIVE, CANDIDATE], "its thread still writes"

    candidate.is_running = False
    node.step(view_of(Stage.ABANDONED))

    assert node.directory.stored_versions() == [LIVE]


class DownBackend(LmdbBackend):
    """A backend of shared stores whose server does not answer while `is_down`."""

    is_shared = True
    is_down = True

    def remove(self, path: Path) -> None:
        """Remove nothing, or raise."""
        if self.is_down:
            raise ServerWriteError.unanswered("Redis", path.name)


def test_shared_store_is_removed_once_its_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_followers, "STATE_PROPAGATION_S", 0.0)
    monkeypatch.setattr(version_followers, "REMOVAL_RETRY_S", 0.0)
    backend = DownBackend(1024 * 1024)
    node = Node(StoreDirectory(tmp_path, LmdbBackend(1024 * 1024), {"balance": backend}))
    node.step(BESIDE)
    candidate = node.started_of(CANDIDATE)[0]
    candidate.is_ready, candidate.write_error = False, "Redis does not answer"
    node.step(BESIDE)
    assert CANDIDATE in node.versions.running, "removing it would free nothing of this node"

    candidate.is_running = False
    for _ in range(3):
        node.step(view_of(Stage.ABANDONED))
    assert node.directory.stored_versions() == [LIVE, CANDIDATE]

    backend.is_down = False
    node.step(view_of(Stage.ABANDONED))
    assert node.directory.stored_versions() == [LIVE]


def test_damaged_store_is_replaced_after_workers_have_read_a_state_without_it(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.step(BESIDE)
    live = node.started_of(LIVE)[0]
    live.failure, live.is_running = StoreDamagedError.at(Path("store"), "checksum"), False
    store = (node.directory.path(*LIVE) / "data.mdb").stat().st_ino

    node.versions.step(BESIDE)
    node.versions.step(BESIDE)
    assert (LIVE not in node.versions.running, node.forgotten) == (True, [LIVE])
    assert (node.directory.path(*LIVE) / "data.mdb").stat().st_ino == store, "no state has been published yet"

    monkeypatch.setattr(version_followers, "STATE_PROPAGATION_S", 60.0)
    node.versions.state_published()
    node.step(BESIDE)
    assert LIVE not in node.versions.running, "the workers may not have read it yet"

    monkeypatch.setattr(version_followers, "STATE_PROPAGATION_S", 0.0)
    node.step(BESIDE)
    assert len(node.started_of(LIVE)) == 2


def test_store_that_a_reader_finds_damaged_is_replaced(node: Node) -> None:
    node.step(BESIDE)
    (node.directory.path(*LIVE) / "damaged").write_text("found by a reader")

    node.step(BESIDE)
    node.started_of(LIVE)[0].is_running = False
    node.step(BESIDE)

    assert len(node.started_of(LIVE)) == 2
    assert not node.directory.is_reported_damaged(*LIVE)


@pytest.mark.parametrize(("pause_s", "started"), [(60.0, 1), (0.0, 2)])
def test_incomplete_store_of_a_version_that_is_not_live_frees_a_full_disk_and_is_loaded_again_after_a_pause(
    node: Node, monkeypatch: pytest.MonkeyPatch, pause_s: float, started: int
) -> None:
    monkeypatch.setattr(version_followers, "PAUSE_S", pause_s)
    node.step(BESIDE)
    candidate = node.started_of(CANDIDATE)[0]
    candidate.write_error, candidate.is_ready = FULL, False

    node.step(BESIDE)
    assert (list(node.versions.running), node.forgotten) == ([LIVE], [CANDIDATE])
    candidate.is_running = False
    with (node.directory.path(*CANDIDATE) / "data.mdb").open("rb") as store:
        node.step(BESIDE)
        assert os.fstat(store.fileno()).st_nlink == 0, "the store that filled the disk is removed"
    assert len(node.started_of(CANDIDATE)) == started


def test_paused_version_that_is_promoted_starts_immediately(node: Node) -> None:
    node.step(BESIDE)
    candidate = node.started_of(CANDIDATE)[0]
    candidate.write_error, candidate.is_ready = FULL, False
    node.step(BESIDE)
    candidate.is_running = False
    node.step(BESIDE)

    node.step(view_of(Stage.LIVE, live=2))

    assert CANDIDATE in node.versions.running


@pytest.mark.parametrize(("key", "is_ready"), [(LIVE, True), (LIVE, False), (CANDIDATE, True)])
def test_complete_or_live_store_is_kept_on_a_full_disk(node: Node, key: Key, *, is_ready: bool) -> None:
    node.step(BESIDE)
    follower = node.started_of(key)[0]
    follower.write_error, follower.is_ready = FULL, is_ready

    node.step(BESIDE)

    assert (list(node.versions.running), node.forgotten) == ([LIVE, CANDIDATE], [])
    assert follower.ended_with_discard is None


def test_store_is_kept_when_its_version_fails_otherwise(node: Node) -> None:
    node.step(BESIDE)
    candidate = node.started_of(CANDIDATE)[0]
    candidate.failure, candidate.is_running = RuntimeError("Kafka"), False

    node.step(BESIDE)
    node.step(BESIDE)

    assert candidate.ended_with_discard is False
    assert node.directory.stored_versions() == [LIVE, CANDIDATE]


def test_failure_of_the_live_version_is_raised(node: Node) -> None:
    node.step(BESIDE)
    node.started_of(LIVE)[0].failure = RuntimeError("Kafka")

    with pytest.raises(RuntimeError, match="Kafka"):
        node.step(BESIDE)


def test_version_whose_changelog_was_replaced_starts_again(node: Node) -> None:
    node.step(BESIDE)
    elsewhere = {**BESIDE.topics, "balance.v1.changelog": TopicFacts(Binding("c", "t", "another"), 1)}
    node.step(replace(BESIDE, topics=elsewhere))
    ended = node.started_of(LIVE)[0]

    assert (ended.ended_with_discard, LIVE in node.versions.running) == (False, False)
