"""Replaces worker processes that do not answer: stopped ones, and ones whose threads all wait for something that does not come.

All workers listen on the same port, and the kernel chooses one for each connection. The watchdog, a thread of the server's main
process, opens connections until it has one to every worker, keeps these open, and sends a request on each of them every second. A
worker that answers none of them within the timeout is killed; the server starts another one, and the connections of the killed one
fail instead of hanging.
"""

import http.client
import logging
import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

# The response header with the process that answered.
WORKER_HEADER = "Foldlake-Worker"
PATH = "/healthz"
CHECK_S = 1.0
# A check waits this long for the answers. One that comes later is received by the next check.
ANSWER_S = 0.8
MIN_PAUSE_S = 0.1
CONNECT_TIMEOUT_S = 0.25
# Connections that are opened at once to find a worker. With two workers, one in 65,536 attempts misses one, and a second later the
# next attempt follows.
SEARCH_CONNECTIONS = 16
SEARCH_S = 2.0
# A worker that has not answered yet is starting, and loads its modules from a disk that may be busy.
START_CHECKS = 60
# An address that a server binds to, and where it is reached from its own machine.
REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - not bound here

log = logging.getLogger(__name__)


class Worker(Protocol):
    """A worker process."""

    @property
    def pid(self) -> int | None:
        """Its process id; None before it is started."""

    def kill(self) -> None:
        """End it at once."""


@dataclass(eq=False)
class _Watched:
    """A worker, the connection to it, and for how many checks it has not answered."""

    worker: Worker
    connection: http.client.HTTPConnection | None = None
    is_asked: bool = False
    has_answered: bool = False
    missed: int = 0


class WorkerWatchdog:
    """Watches the workers of a server until `stop`."""

    def __init__(
        self,
        workers: Callable[[], Sequence[Worker]],
        bind: str,
        port: int,
        timeout_s: int,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Watch the processes that `workers` returns at the time.

        bind, port: the address of the server. timeout_s: a worker that answers nothing for this long is killed. Counted in checks
        of a second, so that a pause of the whole machine kills no worker. tls: of the connections; None for plain HTTP.
        """
        self._workers = workers
        self._address = (REACHED_AT.get(bind, bind), port)
        self._timeout_checks = max(1, int(timeout_s / CHECK_S))
        self._watched: dict[int, _Watched] = {}
        self._stopping = threading.Event()
        self._tls = tls
        # A worker that is forked meanwhile would inherit locks of the TLS library.
        self._checking: AbstractContextManager[object] = nullcontext()
        if tls is not None:
            self._checking = lock = threading.Lock()
            os.register_at_fork(
                before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
            )
        # A worker that is forked later must not keep the connections to the others open.
        os.register_at_fork(after_in_child=self._close)

    def start(self) -> None:
        """Start watching in a thread."""
        threading.Thread(target=self._run, name="worker watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop watching; returns immediately."""
        self._stopping.set()

    def _run(self) -> None:
        pause_s = CHECK_S
        while not self._stopping.wait(pause_s):
            began = time.monotonic()
            try:
                with self._checking:
                    self.check()
            except Exception:
                log.exception("cannot check the HTTP workers; trying again")
            pause_s = max(MIN_PAUSE_S, CHECK_S - (time.monotonic() - began))

    def check(self) -> None:
        """Ask every worker once, and kill those that have not answered for too long."""
        self._update_watched()
        self._ask()
        if any(one.connection is None for one in self._watched.values()):
            self._search()
        for pid, one in self._watched.items():
            limit = self._timeout_checks if one.has_answered else START_CHECKS
            if one.missed >= limit and not self._stopping.is_set():
                log.error("worker %d has not answered for %d s: it is killed and replaced", pid, one.missed)
                one.worker.kill()

    def _update_watched(self) -> None:
        current = {worker.pid: worker for worker in self._workers() if worker.pid is not None}
        for pid in self._watched.keys() - current.keys():
            _drop(self._watched.pop(pid))
        for pid in current.keys() - self._watched.keys():
            self._watched[pid] = _Watched(current[pid])
        for one in self._watched.values():
            one.missed += 1

    def _ask(self) -> None:
        """Send a request to each worker whose last one is answered, and receive the answers."""
        for one in self._watched.values():
            if one.connection is not None and not one.is_asked:
                try:
                    _send(one.connection)
                    one.is_asked = True
                except (OSError, http.client.HTTPException):
                    _drop(one)
        asked = {c: one for one in self._watched.values() if (c := one.connection) is not None}
        for connection, pid in _answers(asked):
            one = asked[connection]
            one.is_asked = False
            if pid == one.worker.pid:
                one.missed, one.has_answered = 0, True
            else:
                _drop(one)

    def _search(self) -> None:
        """Open connections, and keep one to each worker that has none."""
        opened = []
        end_s = time.monotonic() + SEARCH_S
        for _ in range(SEARCH_CONNECTIONS):
            if time.monotonic() > end_s:
                break  # a stopped worker does not end its handshakes
            with suppress(OSError, http.client.HTTPException):
                connection = _connected(*self._address, self._tls)
                opened.append(connection)
                _send(connection)
        kept = set()
        for connection, pid in _answers(opened):
            found = self._watched.get(pid or 0)
            if found is None:
                continue
            found.missed, found.has_answered = 0, True
            if found.connection is None:
                found.connection = connection
                kept.add(connection)
        for connection in opened:
            if connection not in kept:
                connection.close()

    def _close(self) -> None:
        for one in self._watched.values():
            _drop(one)


def _drop(one: _Watched) -> None:
    if one.connection is not None:
        one.connection.close()
    one.connection, one.is_asked = None, False


def _connected(address: str, port: int, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    """Return a new connection; raises OSError.

    Not by the client, which resolves even numeric addresses: a worker that is forked meanwhile would inherit the resolver's lock.
    """
    connection = http.client.HTTPConnection(address, port)
    connection.sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        connection.sock.settimeout(CONNECT_TIMEOUT_S)
        connection.sock.connect((address, port))
        if tls is not None:
            connection.sock.settimeout(ANSWER_S)
            connection.sock = tls.wrap_socket(connection.sock)
    except OSError:
        connection.close()
        raise
    return connection


def _send(connection: http.client.HTTPConnection) -> None:
    connection.auto_open = 0  # raises NotConnected once the worker has closed the connection
    # `localhost` is an allowed host of every node.
    connection.request("GET", PATH, headers={"Host": "localhost"})


def _answers(
    connections: Iterable[http.client.HTTPConnection],
) -> Iterable[tuple[http.client.HTTPConnection, int | None]]:
    """Yield each connection on which an answer arrives within ANSWER_S, and the process that answered; None: no valid answer."""
    waiting = {connection.sock.fileno(): connection for connection in connections if connection.sock}
    poller = select.poll()
    for descriptor in waiting:
        poller.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + ANSWER_S
    while waiting and (left_s := deadline - time.monotonic()) > 0:
        for descriptor, _ in poller.poll(left_s * 1000):
            poller.unregister(descriptor)
            connection = waiting.pop(descriptor)
            yield connection, _receive(connection)


def _receive(connection: http.client.HTTPConnection) -> int | None:
    try:
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return None
    pid = response.headers.get(WORKER_HEADER, "")
    return int(pid) if response.status == HTTPStatus.OK and pid.isdigit() else None
