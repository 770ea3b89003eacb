"""The stores that an HTTP worker has open: a store is opened by its first lookup, and closed after its removal.

An open store occupies its disk space, even when removed, until the last thread that reads from it has finished.
"""

import threading
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import NamedTuple

from include.kafka.state_record import RawDecoder
from query_api.errors import StoreDamagedError, StoreMissingError
from query_api.store.base import StoreReader
from query_api.store.directory import StoreDirectory


class OpenStore(NamedTuple):
    """A store; `covered`: partition -> a changelog offset before which the store has read everything."""

    reader: StoreReader
    decoder: RawDecoder
    covered: dict[int, int]

    def covers(self, partition: int, next_offset: int) -> bool:
        """Return whether the store has read everything before a changelog offset of a partition."""
        if self.covered.get(partition, 0) >= next_offset:
            return True
        # A store never goes back, so its positions are read only when more is asked for than they covered last time.
        self.covered.update({p: found.next_offset for p, found in self.reader.positions().items()})
        return self.covered.get(partition, 0) >= next_offset


class OpenStores:
    """The open stores of one node by (read model, version). Thread-safe."""

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory
        self._open: dict[tuple[str, int], OpenStore] = {}
        self._open_lock = threading.Lock()

    def get(self, model: str, version: int, partitions: int) -> OpenStore:
        """Return the version's current store; raises StoreMissingError or StoreDamagedError."""
        name = (model, version)
        found = self._open.get(name)
        if found is not None and not found.reader.is_replaced():
            return found
        with self._open_lock:
            opened = self._open.get(name)
            if opened is None or opened is found:
                self._open.pop(name, None)
                reader = self._directory.open_reader(model, version, partitions)
                opened = self._open[name] = OpenStore(reader, RawDecoder(reader.schema_text), {})
            return opened

    def keep(self, versions: AbstractSet[tuple[str, int]]) -> None:
        """Drop the stores of all other versions, and those that were replaced."""
        for name, opened in list(self._open.items()):
            if name in versions and not opened.reader.is_replaced():
                continue
            with self._open_lock:
                if self._open.get(name) is opened:
                    del self._open[name]

    def report_damage(self, model: str, version: int, error: StoreDamagedError) -> None:
        """Drop a damaged store, and report the damage to the materializer."""
        self._open.pop((model, version), None)
        with suppress(StoreMissingError):
            self._directory.report_damage(model, version, error)
