"""The `memory` backend: only a socket on disk. A store ends with the process that writes it."""

from pathlib import Path
from typing import TYPE_CHECKING

from query_api.store.checks import CheckExtent, StoreCheck, Unusable
from query_api.store.memory.reader import MemoryReader
from query_api.store.memory.records import MAX_KEY_BYTES, Records
from query_api.store.memory.server import SOCKET_FILE, RecordServer
from query_api.store.memory.writer import MemoryWriter

if TYPE_CHECKING:
    from include.settings import Settings


class MemoryBackend:
    """Opens stores in this process's memory, and readers of stores in other processes; see StoreBackend."""

    is_shared = False
    max_key_bytes = MAX_KEY_BYTES

    @classmethod
    def from_settings(cls, settings: "Settings") -> "MemoryBackend":  # noqa: ARG003 - it has no settings
        """Return the backend."""
        return cls()

    def exists(self, path: Path) -> bool:
        """Whether the store's socket exists."""
        return (path / SOCKET_FILE).exists()

    def begin_check(self, path: Path, extent: CheckExtent) -> StoreCheck:  # noqa: ARG002 - the same for all of them
        """Return that the store cannot be used: it does not outlive its writer."""
        return Unusable("its records were in the memory of an earlier process")

    def open_writer(self, path: Path, partitions: int) -> MemoryWriter:
        """Create an empty store, and serve it to readers."""
        path.mkdir(parents=True, exist_ok=True)
        records = Records(partitions)
        return MemoryWriter(path, records, RecordServer(path, records))

    def open_reader(self, path: Path, partitions: int) -> MemoryReader:  # noqa: ARG002 - only the writer's process needs it
        """Connect to the store; raises StoreMissingError."""
        return MemoryReader(path)

    def remove(self, path: Path) -> None:
        """Do nothing: the store is in its directory."""
