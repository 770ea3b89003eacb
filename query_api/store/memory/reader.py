"""The reader of a store in another process's memory."""

import os
import threading
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

from query_api.errors import StoreMissingError
from query_api.store.base import (
    ALL_KEYS,
    ALL_RECORDS,
    ChangelogPosition,
    KeyRange,
    Page,
    Sample,
    StoredRecord,
)
from query_api.store.memory.server import SOCKET_FILE, short_address
from query_api.store.replacement import FileIdentity, ReplacementCheck

# A process that does not answer within this time is stopped or overloaded: another node answers the lookup.
ANSWER_TIMEOUT_S = 1.0
# Longer for listings, which no other node can answer, and which take a busy process more time.
PAGE_TIMEOUT_S = 5.0
# Each connection uses a thread in the writer's process; further threads of this process wait for a free connection.
MAX_CONNECTIONS = 16


class MemoryReader:
    """Reads from the process that serves the store; see StoreReader. Its connections close with the last reference to it."""

    def __init__(self, path: Path, *, answer_timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        """Connect to the store at `path`; raises StoreMissingError."""
        self._path = path
        self._answer_timeout_s = answer_timeout_s
        self._is_gone = False
        self._replacement = ReplacementCheck(path / SOCKET_FILE, _socket_identity)
        self._token: str | None = None
        self._idle: deque[Connection] = deque()
        self._slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        try:
            self._idle.append(self._connect())
        except (OSError, EOFError) as error:
            raise StoreMissingError.at(path) from error

    def is_replaced(self) -> bool:
        """Whether the store was removed or replaced."""
        return self._is_gone or self._replacement.is_replaced()

    def get(self, partition: int, key: bytes) -> StoredRecord | None:
        """Return the record of a key, or None."""
        record: StoredRecord | None = self._ask("get", partition, key)
        return record

    def get_many(self, partition: int, keys: Sequence[bytes]) -> dict[bytes, StoredRecord]:
        """Return the records of the keys that exist, all from the same commit."""
        records: dict[bytes, StoredRecord] = self._ask("get_many", partition, keys, timeout_s=PAGE_TIMEOUT_S)
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
        """Return at most `limit` records of a range of keys; see StoreReader.scan."""
        named = {"after": after, "limit": limit, "sample": sample}
        page: Page = self._ask("scan", partition, keys, timeout_s=PAGE_TIMEOUT_S, **named)
        return page

    def count(self, partition: int) -> int:
        """Return the number of records in a partition."""
        count: int = self._ask("count", partition)
        return count

    def size_bytes(self) -> int:
        """Return the approximate memory use of the records."""
        size: int = self._ask("size_bytes")
        return size

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""
        text: str | None = self._ask("schema_text", schema_id)
        return text

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""
        positions: dict[int, ChangelogPosition] = self._ask("positions")
        return positions

    def _ask(self, method: str, *arguments: object, timeout_s: float = 0.0, **named: object) -> Any:  # noqa: ANN401 - the method's own type
        """Call a method of the store; raises StoreMissingError when its process does not answer in time."""
        timeout_s = max(timeout_s, self._answer_timeout_s)
        if not self._slots.acquire(timeout=timeout_s):
            raise StoreMissingError.unanswered(self._path, timeout_s)
        try:
            connection = self._idle_connection() or self._connect()
            connection.send((method, arguments, named))
            if not connection.poll(timeout_s):
                raise StoreMissingError.unanswered(self._path, timeout_s)
            answer = connection.recv()
            self._idle.append(connection)
        except (OSError, EOFError) as error:
            self._is_gone = True
            raise StoreMissingError.at(self._path) from error
        else:
            return answer
        finally:
            self._slots.release()

    def _idle_connection(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self) -> Connection:
        """Return a new connection to the same server as the first; raises OSError or EOFError."""
        directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with socket(AF_UNIX, SOCK_STREAM) as client:
                client.settimeout(self._answer_timeout_s)  # for a server whose backlog is full
                client.connect(short_address(directory))
                client.settimeout(None)
                connection = Connection(client.detach())
        finally:
            os.close(directory)
        if not connection.poll(self._answer_timeout_s):
            raise StoreMissingError.unanswered(self._path, self._answer_timeout_s)
        token = connection.recv()
        if self._token not in {None, token}:
            message = "another server has replaced the store"
            raise ConnectionResetError(message)
        self._token = token
        return connection


def _socket_identity(status: os.stat_result) -> FileIdentity:
    """Return the identity of a socket file; its inode alone may be reused by its successor."""
    return status.st_ino, status.st_mtime_ns
