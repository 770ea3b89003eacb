"""Readers of a store in another process, like HTTP workers; LMDB allows only one environment per process."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

from include.settings import Settings
from query_api.errors import StoreMissingError
from query_api.store.base import StoreBackend, StoreReader
from query_api.store.stored_form import unpacked

PARTITIONS = 2
MAP_SIZE_MB = 64
LEAST_READS = 50


def node_settings(backend: str, redis_url: str = "") -> Settings:
    """Return settings with a backend of local stores, and the Redis of the others."""
    return Settings.of(node_store=backend, node_store_map_size_mb=MAP_SIZE_MB, redis_url=redis_url)


@contextmanager
def reader_process() -> Iterator[ProcessPoolExecutor]:
    """Start a process in which readers can be opened."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


class _RemoteReader:
    """Calls every method of a reader in another process."""

    def __init__(self, backend: StoreBackend, path: Path, process: ProcessPoolExecutor) -> None:
        self._reader = (backend, path)
        self._process = process

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*arguments: object, **named: object) -> object:
            return self._process.submit(_call, *self._reader, method, arguments, named).result()

        return call


def remote_reader(backend: StoreBackend, path: Path, process: ProcessPoolExecutor) -> StoreReader:
    """Return a reader that was opened in another process."""
    reader = cast("StoreReader", _RemoteReader(backend, path, process))
    reader.positions()  # opens it
    return reader


def torn_reads(
    backend: StoreBackend, path: Path, keys: Sequence[bytes], seconds: float
) -> tuple[int, list[list[int]]]:
    """Repeatedly read keys that every commit changes together; return the number of reads, and the inconsistent ones.

    On a busy machine, the reads take longer: there are more than `LEAST_READS`.
    """
    reads, torn = 0, []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline or reads <= LEAST_READS:
        reads += 1
        page = _reader(backend, path).scan(0, limit=len(keys))
        found = [record.event_count for _, record in unpacked(page)]
        if len(found) not in {0, len(keys)} or len(set(found)) > 1:
            torn.append(found)
    return reads, torn


_open_here: dict[Path, StoreReader] = {}


def _reader(backend: StoreBackend, path: Path) -> StoreReader:
    if path not in _open_here:
        _open_here[path] = backend.open_reader(path, PARTITIONS)
    return _open_here[path]


def _call(
    backend: StoreBackend, path: Path, method: str, arguments: tuple[object, ...], named: dict[str, object]
) -> object:
    try:
        return getattr(_reader(backend, path), method)(*arguments, **named)
    except StoreMissingError:
        if not _open_here[path].is_replaced():
            raise
        del _open_here[path]  # as an HTTP worker does (open_stores.py)
    return getattr(_reader(backend, path), method)(*arguments, **named)
