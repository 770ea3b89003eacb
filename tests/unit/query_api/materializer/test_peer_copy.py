"""An empty store is filled with a peer's records, or left for the changelog: it never has a part of a partition with a position."""

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from include.boot_clock import Moment
from include.kafka.wire_format import header
from include.nodes import record_stream
from include.nodes.partition_report import PartitionReport
from include.nodes.record_client import PartitionReplica, ReplicaUnavailableError
from include.nodes.record_stream import RECORD_SCHEMA
from include.position import Offsets
from include.settings import Settings
from query_api.cluster.node_state import PartitionState
from query_api.errors import FollowingStoppedError, StoreFullError
from query_api.materializer.peer_copy import PeerCopy
from query_api.materializer.version_follower import VersionFollower, VersionReference
from query_api.store.base import Binding, StoreWriter
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb import LmdbBackend
from tests.support.http.played_registry import add_schema, record
from tests.support.http.played_server import PlayedServer, played_server

PEER, OTHER = "http://127.0.0.1:5051", "http://127.0.0.1:5052"
REFERENCE = VersionReference("balance", 1, 2, Binding("cluster", "balance.v1.changelog", "id"))
SCHEMA = 7
POSITION = 50_000
BACKEND = LmdbBackend(16 * 1024 * 1024)


class Changelog:
    """A consumer of a changelog with some records in each partition."""

    def __init__(self, records: int = 60_000) -> None:
        self._records = records

    def get_watermark_offsets(self, partition: object, timeout: float) -> tuple[int, int]:
        """Return the bounds of a partition."""
        _ = partition, timeout
        return 0, self._records


@pytest.fixture
def registry() -> Iterator[PlayedServer]:
    with played_server() as server:
        add_schema(server, SCHEMA, record("shop.State", {"name": "id", "type": "string"}))
        yield server


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreWriter]:
    writer = BACKEND.open_writer(tmp_path, 2)
    yield writer
    writer.close()


def report(partition: int, **changed: object) -> PartitionReport:
    fields: dict[str, Any] = {
        "read_model": "balance",
        "version": 1,
        "stage": "live",
        "owner": PEER,
        "standbys": (),
        "reported_by": PEER,
        "is_held": True,
        "is_ready": True,
        "changelog_topic": "balance.v1.changelog",
        "changelog_id": "id",
        "position": POSITION + partition,
        "folded": Offsets({partition: 900}),
    }
    return PartitionReport(partition=partition, **{**fields, **changed})


def batch(*names: str) -> pa.RecordBatch:
    value = header(SCHEMA) + b"x"
    rows = [{"key": name, "value": value, "event_count": 3, "offset": 10} for name in names]
    return pa.RecordBatch.from_pylist(rows, schema=RECORD_SCHEMA)


def copier(
    registry: PlayedServer,
    reports: list[PartitionReport],
    stopped: list[bool] | None = None,
    records: int = 60_000,
) -> PeerCopy:
    settings = Settings.of(schema_registry_url=registry.url)
    consumer: Any = Changelog(records)
    version = REFERENCE.model, REFERENCE.number, REFERENCE.binding
    return PeerCopy(settings, consumer, version, lambda: bool(stopped), lambda: reports)


def streams(monkeypatch: pytest.MonkeyPatch, by_partition: dict[int, list[Any]]) -> None:
    """Have the peer send these batches of each partition; an error in place of a batch is raised."""

    def stream(replica: PartitionReplica, *_: object) -> Iterator[pa.RecordBatch]:
        for sent in by_partition[replica.partition]:
            if isinstance(sent, Exception):
                raise sent
            yield sent

    monkeypatch.setattr(record_stream, "stream_records", stream)


def keys(store: Any, partition: int) -> list[bytes]:  # noqa: ANN401 - a writer, which reads no records by itself
    with store._environment.begin(db=store._records[partition]) as transaction:
        return [key for key, _ in transaction.cursor()]


def test_all_records_of_a_peer_are_copied_with_its_position(
    registry: PlayedServer, store: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams(monkeypatch, {0: [batch("a", "b"), batch("c")], 1: [batch("d")]})
    copy = copier(registry, [report(0), report(1)])

    copy.fill(store, frozenset({0, 1}))

    assert [keys(store, p) for p in (0, 1)] == [[b"a", b"b", b"c"], [b"d"]]
    found = store.positions()
    assert {p: (one.next_offset, one.folded) for p, one in found.items()} == {
        p: (POSITION + p, Offsets({p: 900})) for p in (0, 1)
    }
    assert json.loads(store.schemas()[SCHEMA])["name"] == "shop.State"
    assert copy.records == 4


def test_of_a_peer_that_disappears_nothing_is_left(
    registry: PlayedServer, store: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams(monkeypatch, {0: [batch("d")], 1: [batch("a"), ReplicaUnavailableError("it is gone")]})

    copier(registry, [report(0), report(1)]).fill(store, frozenset({0, 1}))

    assert keys(store, 1) == []
    assert store.positions().keys() == {0}


@pytest.mark.parametrize(
    "error", [ReplicaUnavailableError("it is gone"), StoreFullError("no space")], ids=repr
)
def test_a_peer_that_has_failed_is_not_asked_again_and_another_one_is(
    error: Exception, registry: PlayedServer, store: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = []

    def stream(replica: PartitionReplica, *_: object) -> Iterator[pa.RecordBatch]:
        requested.append((replica.url, replica.partition))
        yield batch("a" if replica.url == OTHER else "partial")
        if replica.url == PEER:
            raise error

    monkeypatch.setattr(record_stream, "stream_records", stream)
    reports = [report(p, reported_by=url) for url in (PEER, OTHER) for p in (0, 1)]

    copier(registry, reports).fill(store, frozenset({0, 1}))

    assert requested == [(PEER, 0), (OTHER, 0), (OTHER, 1)]
    assert [keys(store, p) for p in (0, 1)] == [[b"a"], [b"a"]]
    assert store.positions().keys() == {0, 1}


@pytest.mark.parametrize(
    "unusable",
    [
        {"is_ready": False},
        {"is_held": False},
        {"version": 2},
        {"position": None},
        {"changelog_topic": "another"},
        {"changelog_id": "of the deleted topic"},
    ],
    ids=str,
)
def test_only_a_peer_that_is_ready_for_the_version_is_copied(
    unusable: dict[str, Any],
    registry: PlayedServer,
    store: StoreWriter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streams(monkeypatch, {0: [batch("a")]})

    copier(registry, [report(0, **unusable)]).fill(store, frozenset({0, 1}))

    assert store.positions() == {}
    assert keys(store, 0) == []


def test_a_copy_that_is_stopped_has_no_position(
    registry: PlayedServer, store: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[bool] = []

    def stream(replica: PartitionReplica, *_: object) -> Iterator[pa.RecordBatch]:
        yield batch("a")
        if replica.partition == 1:
            stopped.append(True)
        yield batch("b")

    monkeypatch.setattr(record_stream, "stream_records", stream)

    with pytest.raises(FollowingStoppedError):
        copier(registry, [report(0), report(1)], stopped).fill(store, frozenset({0, 1}))

    assert store.positions() == {}


def test_what_a_killed_copy_has_left_is_removed(
    registry: PlayedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stream(*_: object) -> Iterator[pa.RecordBatch]:
        yield batch("a")
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(record_stream, "stream_records", stream)

    def copy() -> None:
        copier(registry, [report(0)]).fill(BACKEND.open_writer(tmp_path, 2), frozenset({0, 1}))

    process = multiprocessing.get_context("fork").Process(target=copy)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    store = BACKEND.open_writer(tmp_path, 2)
    assert (store.positions(), keys(store, 0)) == ({}, [b"a"])
    changes: list[dict[int, PartitionState] | None] = []
    directory = StoreDirectory(tmp_path / "stores", BACKEND)
    settings = Settings.of(node_copy_from_peers=False)
    follower = VersionFollower(
        settings,
        REFERENCE,
        directory,
        previously_ready={0: Moment.now()},
        on_change=lambda: changes.append(follower.partitions()),
    )
    consumer: Any = Changelog()

    follower._fill(store, consumer)

    assert keys(store, 0) == []
    # Lookups find no partition in the meantime.
    assert changes == [{}]
    store.close()


def test_a_short_changelog_is_read_instead(
    registry: PlayedServer, store: StoreWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams(monkeypatch, {0: [batch("a")]})

    copier(registry, [report(0)], records=100).fill(store, frozenset({0}))

    assert store.positions() == {}
