"""The `lmdb` backend: stores in memory-mapped files, one environment for each version of a read model."""

from pathlib import Path

from include.settings import Settings
from query_api.store.checks import CheckExtent, FinishedCheck, StoreCheck
from query_api.store.lmdb import layout
from query_api.store.lmdb.integrity import ReadCheck
from query_api.store.lmdb.reader import LmdbReader
from query_api.store.lmdb.writer import LmdbWriter


class LmdbBackend:
    """Opens LMDB stores whose map starts at `map_size_bytes` and grows on demand; see StoreBackend."""

    is_shared = False
    max_key_bytes = layout.MAX_KEY_BYTES

    def __init__(self, map_size_bytes: int) -> None:
        self._map_size_bytes = map_size_bytes

    @classmethod
    def from_settings(cls, settings: Settings) -> "LmdbBackend":
        """Return the backend with a node's map size."""
        return cls(settings.node.store_map_size_mb * 1024 * 1024)

    def exists(self, path: Path) -> bool:
        """Whether the data file exists."""
        return (path / layout.DATA_FILE).exists()

    def begin_check(self, path: Path, extent: CheckExtent) -> StoreCheck:
        """Begin to read the store in a child process; raises StoreWriteError when that cannot be started."""
        return ReadCheck(path, extent) if self.exists(path) else FinishedCheck("its data file is missing")

    def open_writer(self, path: Path, partitions: int) -> LmdbWriter:
        """Open the store for writing, and create it if it does not exist; raises StoreDamagedError."""
        return LmdbWriter(path, map_size_bytes=self._map_size_bytes, partitions=partitions)

    def open_reader(self, path: Path, partitions: int) -> LmdbReader:
        """Open the store for reading; raises StoreMissingError or StoreDamagedError."""
        return LmdbReader(path, map_size_bytes=self._map_size_bytes, partitions=partitions)

    def remove(self, path: Path) -> None:
        """Do nothing: the store is in its directory."""


BACKEND = LmdbBackend.from_settings
