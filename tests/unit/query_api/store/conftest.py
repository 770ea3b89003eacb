"""Fixtures for the tests of all backends; a new backend's folder is detected automatically."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from include.settings import Placement
from query_api.store.backends import backend_names, load_backend, load_shared_backends
from query_api.store.base import StoreBackend, StoreReader, StoreWriter
from tests.support.redis.redis_process import RedisProcess, redis_process
from tests.unit.query_api.store.store_process import (
    PARTITIONS,
    node_settings,
    reader_process,
    remote_reader,
)


@pytest.fixture(scope="session")
def process() -> Iterator[ProcessPoolExecutor]:
    with reader_process() as executor:
        yield executor


@pytest.fixture(params=backend_names())
def backend_name(request: pytest.FixtureRequest) -> str:
    """The name of each backend."""
    return str(request.param)


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A real server."""
    with redis_process(tmp_path_factory.mktemp("home")) as server:
        yield server


@pytest.fixture
def redis_backend(redis: RedisProcess) -> StoreBackend:
    """The backend of stores in the server, which is empty."""
    redis.client.flushall()
    return load_shared_backends(node_settings("lmdb", redis.url), {"balance": Placement.REDIS})["balance"]


@pytest.fixture
def backend(backend_name: str, request: pytest.FixtureRequest) -> StoreBackend:
    """Each of the backends."""
    if backend_name == Placement.REDIS:
        found: StoreBackend = request.getfixturevalue("redis_backend")
        return found
    return load_backend(node_settings(backend_name))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The directory of a store."""
    return tmp_path / "balance.v1"


@pytest.fixture
def writer(backend: StoreBackend, path: Path) -> Iterator[StoreWriter]:
    """The writer of a new store, all of whose changelog was read: it is empty so far."""
    writer = backend.open_writer(path, PARTITIONS)
    writer.mark_complete(range(PARTITIONS))
    yield writer
    writer.close()


@pytest.fixture
def reader(
    backend: StoreBackend, writer: StoreWriter, path: Path, process: ProcessPoolExecutor
) -> StoreReader:
    """A reader of the same store in another process."""
    assert writer.positions() == {}
    return remote_reader(backend, path, process)
