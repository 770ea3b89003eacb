"""Readers of a store in another process, like HTTP workers; LMDB allows only one environment per process."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from include.settings import NodeSettings
from query_api.store.backends import load_backend
from query_api.store.base import (
    ALL_KEYS,
    ALL_RECORDS,
    ChangelogPosition,
    KeyRange,
    Page,
    Sample,
    StoredRecord,
    StoreReader,
)

PARTITIONS = 2
MAP_SIZE_MB = 64


def node_settings(backend: str) -> NodeSettings:
    """Return a node's settings with a backend."""
    return NodeSettings(store=backend, store_map_size_mb=MAP_SIZE_MB)


@contextmanager
def reader_process() -> Iterator[ProcessPoolExecutor]:
    """Start a process in which readers can be opened."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        yield executor


class RemoteReader:
    """A reader in another process; opened when it is created."""

    def __init__(self, backend: str, path: Path, process: ProcessPoolExecutor) -> None:
        self._backend = backend
        self._path = path
        self._process = process
        self.positions()

    def _ask(self, method: str, *arguments: object, **named: object) -> Any:  # noqa: ANN401 - the method's own type
        return self._process.submit(_ask, self._backend, self._path, method, arguments, named).result()

    def is_replaced(self) -> bool:
        """Whether the store was removed or replaced."""
        return bool(self._ask("is_replaced"))

    def get(self, partition: int, key: bytes) -> StoredRecord | None:
        """Return a record."""
        record: StoredRecord | None = self._ask("get", partition, key)
        return record

    def get_many(self, partition: int, keys: Sequence[bytes]) -> dict[bytes, StoredRecord]:
        """Return records."""
        records: dict[bytes, StoredRecord] = self._ask("get_many", partition, keys)
        return records

    def scan(
        self,
        partition: int,
        keys: KeyRange = ALL_KEYS,
        *,
        after: bytes = b"",
        limit: int,
        sample: Sample = ALL_RECORDS,
    ) -> Page:
        """Return a page."""
        page: Page = self._ask("scan", partition, keys, after=after, limit=limit, sample=sample)
        return page

    def count(self, partition: int) -> int:
        """Return the number of records."""
        return int(self._ask("count", partition))

    def size_bytes(self) -> int:
        """Return the size."""
        return int(self._ask("size_bytes"))

    def schema_text(self, schema_id: int) -> str | None:
        """Return a schema."""
        text: str | None = self._ask("schema_text", schema_id)
        return text

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return all positions."""
        positions: dict[int, ChangelogPosition] = self._ask("positions")
        return positions


def torn_reads(
    backend: str, path: Path, keys: Sequence[bytes], seconds: float
) -> tuple[int, list[list[int]]]:
    """Repeatedly read keys that every commit changes together; return the number of reads, and the inconsistent ones."""
    reads, torn = 0, []
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        reads += 1
        found = [record.event_count for record in _reader(backend, path).get_many(0, keys).values()]
        if len(found) not in {0, len(keys)} or len(set(found)) > 1:
            torn.append(found)
    return reads, torn


_open_here: dict[Path, StoreReader] = {}


def _reader(backend: str, path: Path) -> StoreReader:
    if path not in _open_here:
        _open_here[path] = load_backend(node_settings(backend)).open_reader(path, PARTITIONS)
    return _open_here[path]


def _ask(
    backend: str, path: Path, method: str, arguments: tuple[object, ...], named: dict[str, object]
) -> object:
    return getattr(_reader(backend, path), method)(*arguments, **named)
