"""Serves a store in memory to readers in other processes, over a Unix domain socket in the store's directory.

A connection starts with the server's token. Each request is then a tuple (method, arguments, keyword arguments), each
reply the return value of that method of Records. Both are pickled by `multiprocessing`, which is safe because only
processes of the same user can connect.
"""

import logging
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from query_api.store.memory.records import Records

SOCKET_FILE = "store.sock"
BACKLOG = 128
ACCEPT_RETRY_S = 0.5
METHODS = frozenset({"get", "get_many", "scan", "count", "size_bytes", "schema_text", "positions"})

log = logging.getLogger(__name__)


def short_address(directory_fd: int) -> str:
    """Return a path of a store's socket that is short enough: the kernel accepts at most 107 bytes."""
    return f"/proc/self/fd/{directory_fd}/{SOCKET_FILE}"


class RecordServer:
    """Answers readers until `close`: one thread accepts connections, and one thread per connection answers."""

    def __init__(self, path: Path, records: Records) -> None:
        """Serve `records` at the directory `path`; it must exist."""
        self._name = path.name
        self._records = records
        self._token = secrets.token_hex()
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._is_closed = False
        self._directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        os.fchmod(self._socket.fileno(), 0o600)  # before `bind`, which gives the file these permissions
        with suppress(FileNotFoundError):
            (path / SOCKET_FILE).unlink()  # left by a killed process
        self._socket.bind(short_address(self._directory))
        self._socket.listen(BACKLOG)
        threading.Thread(target=self._accept, name=f"{self._name} readers", daemon=True).start()

    def close(self) -> None:
        """End all connections and accept no more; does nothing when already closed."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            connections = list(self._connections)
        with suppress(FileNotFoundError):
            os.unlink(SOCKET_FILE, dir_fd=self._directory)
        os.close(self._directory)
        self._socket.shutdown(socket.SHUT_RDWR)  # interrupts `accept`, which `close` alone does not
        self._socket.close()
        for connection in connections:
            _hang_up(connection)

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._socket.accept()
            except OSError as error:
                if self._is_closed:
                    return
                log.warning("%s: cannot accept a reader: %s", self._name, error)
                time.sleep(ACCEPT_RETRY_S)
                continue
            connection = Connection(accepted.detach())
            with self._lock:
                if self._is_closed:
                    return
                self._connections.add(connection)
            threading.Thread(
                target=self._serve, args=(connection,), name=f"{self._name} reader", daemon=True
            ).start()

    def _serve(self, connection: Connection) -> None:
        try:
            with suppress(EOFError, OSError):  # the reader is gone, or `close` has ended the connection
                connection.send(self._token)
                while True:
                    method, arguments, named = connection.recv()
                    if method not in METHODS:
                        log.error(
                            "%s: a reader called %r, which is not a method of the store", self._name, method
                        )
                        return
                    connection.send(getattr(self._records, method)(*arguments, **named))
        finally:
            with self._lock:
                self._connections.discard(connection)
                connection.close()


def _hang_up(connection: Connection) -> None:
    """End a connection that a thread is reading from; the thread closes it."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)
