"""A Redis that is down, full, emptied or older than before is noticed by writers and readers, and filled again exactly."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.errors import SettingsError
from query_api.errors import ServerWriteError, StoreFencedError, StoreMissingError
from query_api.store.base import StoreBackend, StoredRecord
from query_api.store.redis.writer import MAX_CHANGES
from tests.support.redis.redis_process import RedisProcess, redis_process
from tests.support.redis.tls_proxy import tls_proxy
from tests.unit.query_api.store.shared_store import at, backend_of, change

PARTITIONS = 2


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisProcess]:
    """A server that the test stops and restarts."""
    with redis_process(tmp_path / "home") as server:
        yield server


def test_emptied_server_is_noticed_and_filled_again(
    redis: RedisProcess, redis_backend: StoreBackend, path: Path
) -> None:
    writer = redis_backend.open_writer(path, PARTITIONS)
    writer.commit({0: [change(b"k", 7)]}, {0: at(8)}, {})
    writer.mark_complete([0])
    reader = redis_backend.open_reader(path, PARTITIONS)
    assert reader.get(0, b"k") is not None

    redis.client.flushall()

    with pytest.raises(StoreMissingError):
        reader.get(0, b"k")
    assert reader.is_replaced()
    with pytest.raises(StoreFencedError):
        writer.housekeep()
    with pytest.raises(StoreFencedError):
        writer.commit({0: [change(b"other", 8)]}, {0: at(9)}, {})

    assert writer.adopt([0]) == {}
    writer.commit({0: [change(b"other", 8)]}, {0: at(9)}, {})
    with pytest.raises(StoreMissingError):
        redis_backend.open_reader(path, PARTITIONS).get(0, b"k")  # not unknown: it is still to come
    writer.mark_complete([0])
    assert redis_backend.open_reader(path, PARTITIONS).count(0) == 1
    with pytest.raises(StoreMissingError):
        reader.get(0, b"other")  # its cached position is that of the store before


def test_server_that_starts_from_an_older_copy_is_read_again_once_it_has_caught_up(
    own_redis: RedisProcess, path: Path
) -> None:
    backend = backend_of(own_redis.url)
    writer = backend.open_writer(path, PARTITIONS)
    writer.commit({0: [change(b"k", 0, 1, b"one")]}, {0: at(1)}, {7: "{}"})
    writer.mark_complete([0])
    own_redis.client.save()
    writer.commit({0: [change(b"k", 1, 2, b"two")]}, {0: at(2)}, {})
    reader = backend.open_reader(path, PARTITIONS)
    assert reader.get(0, b"k") == StoredRecord(b"two", 2, 1)

    own_redis.kill()
    own_redis.restart()

    with pytest.raises(StoreMissingError, match="has lost its newest records"):
        reader.get(0, b"k")
    successor = backend.open_writer(path, PARTITIONS)
    assert successor.adopt([0]) == {0: at(1)}
    assert successor.schemas() == {7: "{}"}
    with pytest.raises(StoreFencedError):
        writer.commit({0: [change(b"k", 2, 3, b"three")]}, {0: at(3)}, {})
    successor.commit({0: [change(b"k", 1, 2, b"two")]}, {0: at(2)}, {})
    assert reader.get(0, b"k") == StoredRecord(b"two", 2, 1)


def test_writer_continues_exactly_after_the_server_had_no_memory_left(
    redis: RedisProcess, redis_backend: StoreBackend, path: Path
) -> None:
    writer = redis_backend.open_writer(path, PARTITIONS)
    writer.commit({0: [change(b"k", 0)]}, {0: at(1)}, {})
    writer.mark_complete([0])
    changes = [change(b"%05d" % n, n + 1, 1, bytes(5_000)) for n in range(10 * MAX_CHANGES)]
    used = int(redis.client.info("memory")["used_memory"])
    redis.client.config_set("maxmemory", used + 20 * 1024 * 1024)
    try:
        with pytest.raises(ServerWriteError, match="Check the server's memory"):
            writer.commit({0: changes}, {0: at(len(changes) + 1)}, {})
        assert redis_backend.open_reader(path, PARTITIONS).get(0, b"k") is not None
    finally:
        redis.client.config_set("maxmemory", 0)

    successor = redis_backend.open_writer(path, PARTITIONS)
    done = successor.adopt([0])[0].next_offset
    assert 1 < done < len(changes)
    assert successor.record_count() == done, "each part is stored whole, with its position"
    successor.commit({0: changes[done - 1 :]}, {0: at(len(changes) + 1)}, {})
    assert redis_backend.open_reader(path, PARTITIONS).count(0) == len(changes) + 1


def test_server_that_is_down_is_named_without_its_password(own_redis: RedisProcess, path: Path) -> None:
    url = own_redis.url.replace("//", "//:secret@")
    own_redis.client.config_set("requirepass", "secret")
    backend = backend_of(url)
    writer = backend.open_writer(path, PARTITIONS)
    writer.mark_complete([0])
    reader = backend.open_reader(path, PARTITIONS)
    assert reader.get(0, b"k") is None
    with pytest.raises(ServerWriteError) as refused:
        backend_of(url.replace("secret", "wrong-secret")).open_writer(path, PARTITIONS)
    own_redis.kill()

    with pytest.raises(
        StoreMissingError, match=r"Redis at 127.0.0.1:\d+ does not answer \(.+\): try again"
    ) as missing:
        reader.get(0, b"k")
    with pytest.raises(ServerWriteError, match="does not answer") as unwritten:
        writer.commit({0: [change(b"k", 0)]}, {0: at(1)}, {})

    assert "secret" not in f"{refused.value} {missing.value} {unwritten.value}"
    own_redis.restart()


def test_invalid_url_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError, match="FOLDLAKE_REDIS_URL is not valid") as refused:
        backend_of("http://:secret@host/0")
    assert "secret" not in str(refused.value)


def test_server_is_reached_over_tls_only_with_a_certificate_that_is_trusted(
    redis: RedisProcess, redis_backend: StoreBackend, path: Path, tmp_path: Path
) -> None:
    writer = redis_backend.open_writer(path, PARTITIONS)
    writer.commit({0: [change(b"k", 0)]}, {0: at(1)}, {})
    writer.mark_complete([0])
    with tls_proxy(redis.settings.redis.port, tmp_path / "proxy.pem") as port:
        url = f"rediss://127.0.0.1:{port}/0"

        reader = backend_of(f"{url}?ssl_ca_certs={tmp_path / 'proxy.pem'}").open_reader(path, PARTITIONS)
        assert reader.get(0, b"k") == StoredRecord(b"v", 1, 0)
        assert reader.scan(0, limit=1).total == 1

        with pytest.raises(StoreMissingError, match="certificate verify failed"):
            backend_of(url).open_reader(path, PARTITIONS).get(0, b"k")
