"""Fixtures for the tests of all backends; a new backend's folder is detected automatically."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from query_api.store.backends import backend_names, load_backend
from query_api.store.base import StoreBackend, StoreReader, StoreWriter
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


@pytest.fixture
def backend(backend_name: str) -> StoreBackend:
    """Each of the backends."""
    return load_backend(node_settings(backend_name))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The directory of a store."""
    return tmp_path / "balance.v1"


@pytest.fixture
def writer(backend: StoreBackend, path: Path) -> Iterator[StoreWriter]:
    """The writer of a new store."""
    writer = backend.open_writer(path, PARTITIONS)
    yield writer
    writer.close()


@pytest.fixture
def reader(backend_name: str, writer: StoreWriter, path: Path, process: ProcessPoolExecutor) -> StoreReader:
    """A reader of the same store in another process."""
    assert writer.positions() == {}
    return remote_reader(backend_name, path, process)
