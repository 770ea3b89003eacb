"""A store in a real Redis: two writers never mix, and readers find whole partitions only."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from include import boot_clock
from include.settings import Placement, Settings
from query_api.errors import StoreDamagedError, StoreFencedError, StoreMissingError
from query_api.store.backends import load_shared_backends
from query_api.store.base import Binding, StoreBackend, StoredRecord
from query_api.store.directory import MAX_ATTEMPTS, StoreDirectory
from query_api.store.lmdb import LmdbBackend
from query_api.store.redis.writer import MAX_CHANGES
from query_api.store.stored_form import BadRecordError, unpacked
from tests.support.redis.redis_process import RedisProcess
from tests.unit.query_api.store.shared_store import at, change

PARTITIONS = 2
CHANGELOG = Binding("cluster", "balance.v1.changelog", "topic id")


def test_writer_whose_partition_another_one_has_continued_changes_nothing(
    redis_backend: StoreBackend, path: Path
) -> None:
    old, new = redis_backend.open_writer(path, PARTITIONS), redis_backend.open_writer(path, PARTITIONS)
    old.commit({0: [change(b"k", 0, 1, b"one")]}, {0: at(1)}, {})
    old.mark_complete([0])

    assert new.adopt([0]) == {0: at(1)}
    new.commit({0: [change(b"k", 1, 2, b"two")]}, {0: at(2)}, {})

    with pytest.raises(StoreFencedError, match="partitions 0"):
        old.commit({0: [change(b"k", 1, 9, b"stale"), change(b"other", 2)]}, {0: at(3)}, {})
    with pytest.raises(StoreFencedError):
        old.housekeep()
    with pytest.raises(StoreFencedError):
        old.forget(0)
    new.housekeep()
    reader = redis_backend.open_reader(path, PARTITIONS)
    assert reader.get(0, b"k") == StoredRecord(b"two", 2, 1)
    assert (reader.count(0), reader.positions()) == (1, {0: at(2)})

    assert old.adopt([0]) == {0: at(2)}, "it goes on from where the other one is"
    old.commit({0: [change(b"k", 2, 3, b"three")]}, {0: at(3)}, {})
    assert reader.get(0, b"k") == StoredRecord(b"three", 3, 2)


def test_fenced_partition_does_not_keep_a_writers_other_partitions_back(
    redis_backend: StoreBackend, path: Path
) -> None:
    old, new = redis_backend.open_writer(path, PARTITIONS), redis_backend.open_writer(path, PARTITIONS)
    old.adopt([0, 1])
    new.commit({0: [change(b"k", 0)]}, {0: at(1)}, {})

    with pytest.raises(StoreFencedError, match="partitions 0, or"):
        old.commit({0: [change(b"a", 0)], 1: [change(b"b", 0)]}, {0: at(1), 1: at(1)}, {})

    assert new.positions() == {0: at(1), 1: at(1)}
    old.release(0)
    old.housekeep()


def test_partition_is_read_only_once_it_is_complete(redis_backend: StoreBackend, path: Path) -> None:
    writer = redis_backend.open_writer(path, PARTITIONS)
    reader = redis_backend.open_reader(path, PARTITIONS)
    writer.commit({0: [change(b"k", 0)]}, {0: at(1)}, {})

    for read in (
        lambda: reader.get(0, b"k"),
        lambda: reader.get(0, b"unknown"),
        lambda: reader.scan(0, limit=1),
        lambda: reader.count(0),
        reader.positions,
    ):
        with pytest.raises(StoreMissingError, match=r"does not have partition 0 of balance\.v1"):
            read()
    assert writer.readable_positions() == {}

    writer.mark_complete([0])

    assert reader.get(0, b"k") is not None
    assert writer.readable_positions() == {0: at(1)}


def test_large_commit_is_stored_in_parts_which_are_whole(redis_backend: StoreBackend, path: Path) -> None:
    writer = redis_backend.open_writer(path, PARTITIONS)
    changes = [change(b"%05d" % n, n) for n in range(2 * MAX_CHANGES + 500)]
    changes += [change(b"00000", len(changes), 2, b"newer"), change(b"00001", len(changes) + 1, 0, None)]

    writer.commit({1: changes}, {1: at(len(changes))}, {})
    writer.mark_complete([1])

    reader = redis_backend.open_reader(path, PARTITIONS)
    assert reader.count(1) == len(changes) - 3
    assert reader.get(1, b"00000") == StoredRecord(b"newer", 2, 2 * MAX_CHANGES + 500)
    assert reader.get(1, b"00001") is None
    assert writer.positions() == {1: at(len(changes))}


def test_partition_that_was_filled_from_another_changelog_counts_as_empty(
    redis_backend: StoreBackend, path: Path
) -> None:
    directory = StoreDirectory(path.parent, LmdbBackend(2**20), {"balance": redis_backend})
    older = directory.open_writer("balance", 1, PARTITIONS, CHANGELOG)
    older.commit({0: [change(b"k", 5)]}, {0: at(6)}, {})
    older.mark_complete([0])

    newer = directory.open_writer(
        "balance", 1, PARTITIONS, Binding("cluster", "balance.v1.changelog", "another")
    )

    assert newer.adopt([0]) == newer.positions() == newer.readable_positions() == {}
    newer.commit({0: [change(b"other", 0)]}, {0: at(1)}, {})
    newer.mark_complete([0])
    reader = directory.open_reader("balance", 1, PARTITIONS)
    assert (reader.get(0, b"k"), reader.count(0)) == (None, 1)
    with pytest.raises(StoreFencedError):
        older.commit({0: [change(b"k", 6)]}, {0: at(7)}, {})


def test_changed_record_and_lost_key_are_damage(
    redis: RedisProcess, redis_backend: StoreBackend, path: Path
) -> None:
    writer = redis_backend.open_writer(path, PARTITIONS)
    writer.commit({0: [change(b"a", 0), change(b"b", 1)]}, {0: at(2)}, {})
    writer.mark_complete([0])
    reader = redis_backend.open_reader(path, PARTITIONS)
    redis.client.hset("foldlake:balance.v1:0", "a", b"\0" * 30)

    with pytest.raises(StoreDamagedError, match="checksum"):
        reader.get(0, b"a")
    with pytest.raises(BadRecordError, match="checksum"):
        unpacked(reader.scan(0, limit=5))

    redis.client.zrem("foldlake:balance.v1:0:keys", "b")
    with pytest.raises(StoreDamagedError, match="as many keys as records"):
        writer.commit({0: [change(b"c", 2)]}, {0: at(3)}, {})


def test_restart_of_the_machine_or_of_the_node_does_not_remove_what_all_nodes_share(
    redis_backend: StoreBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = StoreDirectory(tmp_path, LmdbBackend(2**20), {"balance": redis_backend})
    for _ in range(MAX_ATTEMPTS + 1):
        writer = directory.open_writer("balance", 1, PARTITIONS, CHANGELOG)
    writer.commit({0: [change(b"k", 0)]}, {0: at(1)}, {})
    (tmp_path / "boot_id").write_text("another-boot")
    monkeypatch.setattr(boot_clock, "BOOT_ID", tmp_path / "boot_id")

    again = directory.open_writer("balance", 1, PARTITIONS, CHANGELOG)

    assert again.positions() == {0: at(1)}


def test_store_is_removed_from_the_server_by_a_node_that_uses_it(
    redis: RedisProcess, redis_backend: StoreBackend, tmp_path: Path
) -> None:
    directory = StoreDirectory(tmp_path, LmdbBackend(2**20), {"balance": redis_backend})
    writer = directory.open_writer("balance", 1, PARTITIONS, CHANGELOG)
    writer.commit({0: [change(b"k", 0)]}, {0: at(1)}, {7: "{}"})
    assert redis.client.dbsize() == 3

    unused = tmp_path / "another node" / "balance.v1"
    unused.mkdir(parents=True)
    redis_backend.remove(unused)
    assert redis.client.dbsize() == 3

    directory.discard("balance", 1)
    assert (redis.client.dbsize(), directory.stored_versions()) == (0, [])


def test_clusters_with_different_prefixes_share_a_server(
    redis: RedisProcess, redis_backend: StoreBackend, path: Path
) -> None:
    settings = Settings.of(redis_url=redis.url, redis_prefix="second")
    second = load_shared_backends(settings, {"balance": Placement.REDIS})["balance"]
    for backend, value in ((redis_backend, b"one"), (second, b"two")):
        writer = backend.open_writer(path, PARTITIONS)
        writer.commit({0: [change(b"k", 0, 1, value)]}, {0: at(1)}, {})
        writer.mark_complete([0])

    values = [backend.open_reader(path, PARTITIONS).get(0, b"k") for backend in (redis_backend, second)]

    assert values == [StoredRecord(b"one", 1, 0), StoredRecord(b"two", 1, 0)]


def test_reading_threads_never_find_a_store_that_has_gone_back(
    redis_backend: StoreBackend, path: Path
) -> None:
    writer = redis_backend.open_writer(path, PARTITIONS)
    writer.mark_complete([0])
    reader = redis_backend.open_reader(path, PARTITIONS)

    def read() -> int:
        newest = 0
        for _ in range(300):
            record = reader.get(0, b"k")
            assert record is None or record.event_count >= newest
            newest = newest if record is None else record.event_count
        return newest

    with ThreadPoolExecutor(8) as threads:
        number = 1
        writer.commit({0: [change(b"k", number, number)]}, {0: at(number + 1)}, {})
        reads = [threads.submit(read) for _ in range(8)]
        while not all(one.done() for one in reads):
            number += 1
            writer.commit({0: [change(b"k", number, number)]}, {0: at(number + 1)}, {})
    assert all(one.result() > 0 for one in reads)
