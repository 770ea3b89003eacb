"""The backend `memory`: nothing on the disk but a socket. A store ends with the process that writes it."""

from pathlib import Path
from typing import TYPE_CHECKING

from query_api.store.memory.reader import MemoryReader
from query_api.store.memory.records import MAX_KEY_BYTES, Records
from query_api.store.memory.server import SOCKET_FILE, RecordServer
from query_api.store.memory.writer import MemoryWriter

if TYPE_CHECKING:
    from include.settings import NodeSettings


class MemoryBackend:
    """Opens stores in the memory of this process, or readers of those in another process; see StoreBackend."""

    max_key_bytes = MAX_KEY_BYTES

    @classmethod
    def from_settings(cls, settings: "NodeSettings") -> "MemoryBackend":  # noqa: ARG003 - it has no settings
        """Return the backend."""
        return cls()

    def exists(self, path: Path) -> bool:
        """Whether the store's socket is there."""
        return (path / SOCKET_FILE).exists()

    def damage(self, path: Path) -> str:  # noqa: ARG002 - true of every store that a process has left behind
        """Return that a store does not outlive its writer: what a directory holds from before is never used."""
        return "it is not in this process's memory, and no other process keeps it"

    def open_writer(self, path: Path, partitions: int) -> MemoryWriter:
        """Create an empty store, and serve it to readers."""
        path.mkdir(parents=True, exist_ok=True)
        records = Records(partitions)
        return MemoryWriter(records, RecordServer(path, records))

    def open_reader(self, path: Path, partitions: int) -> MemoryReader:  # noqa: ARG002 - the writer's process knows
        """Connect to the store; raises StoreMissingError."""
        return MemoryReader(path)
