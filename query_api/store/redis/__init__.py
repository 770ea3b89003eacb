"""The `redis` backend: stores in a Redis or Valkey that all nodes share.

The owner of a partition writes it, and every node reads it. A node's directory of a store only says that the node uses it.
"""

from functools import cached_property
from pathlib import Path

from include.settings import RedisSettings, Settings
from query_api.errors import StoreMissingError
from query_api.store.checks import CheckExtent, FinishedCheck, StoreCheck
from query_api.store.redis.layout import MAX_KEY_BYTES, StoreKeys
from query_api.store.redis.reader import RedisReader
from query_api.store.redis.server import RedisServer
from query_api.store.redis.writer import RedisWriter

# In the directory of a store; contains the number of its partitions.
USED_FILE = "redis"


class RedisBackend:
    """Opens stores in the server that the settings name; see StoreBackend. One process uses one set of connections."""

    is_shared = True
    max_key_bytes = MAX_KEY_BYTES

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings

    @classmethod
    def from_settings(cls, settings: Settings) -> "RedisBackend":
        """Return the backend; raises SettingsError for a URL that is not valid."""
        backend = cls(settings.redis)
        _ = backend._server  # raises
        return backend

    def __reduce__(self) -> tuple[type["RedisBackend"], tuple[RedisSettings]]:
        """Another process has connections of its own."""
        return RedisBackend, (self._settings,)

    @cached_property
    def _server(self) -> RedisServer:
        return RedisServer(self._settings)

    def exists(self, path: Path) -> bool:
        """Whether this node uses the store; asks no server."""
        return (path / USED_FILE).exists()

    def begin_check(self, path: Path, extent: CheckExtent) -> StoreCheck:  # noqa: ARG002 - a record is checked when it is read
        """Return that the store can be used, if this node uses it."""
        return FinishedCheck(None if self.exists(path) else "it was not in Redis")

    def open_writer(self, path: Path, partitions: int) -> RedisWriter:
        """Open the store for writing; raises ServerWriteError when the server does not answer."""
        path.mkdir(parents=True, exist_ok=True)
        (path / USED_FILE).write_text(f"{partitions}\n")
        return RedisWriter(path, self._server, self._keys(path), partitions)

    def open_reader(self, path: Path, partitions: int) -> RedisReader:
        """Open the store for reading; raises StoreMissingError when this node does not use it."""
        if not self.exists(path):
            raise StoreMissingError.at(path)
        return RedisReader(path, self._server, self._keys(path), partitions)

    def remove(self, path: Path) -> None:
        """Remove the store from the server, if this node uses it; raises ServerWriteError."""
        if not self.exists(path):
            return
        keys = self._keys(path)
        names = [keys.schemas, *keys.of_partitions(int((path / USED_FILE).read_text()))]
        self._server.write(lambda client: client.unlink(*names))

    def _keys(self, path: Path) -> StoreKeys:
        return StoreKeys(self._settings.prefix, path.name)


BACKEND = RedisBackend.from_settings
