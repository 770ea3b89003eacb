"""Serves on listening sockets that another process holds, so that one HTTP server can replace another without a refused connection.

The process (stack/supervision/socket_holder.py) passes the descriptors of its sockets and of two pipes. A worker reports on the first when it
is ready. From the end of the second on it accepts no connection, and closes each after its next response. See decision 73.
"""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol, Self

from granian.net import SocketHolder  # type: ignore[attr-defined]  # where its own modules import it from
from granian.server import MPServer
from werkzeug.test import Client

from include.process import DRAIN_PIPE, READY_PIPE, die_with_parent, launcher_pid
from query_api.http.limits.connections import DESCRIPTORS, limit_unread_of

# The names of the variables are in the process that sets them as well: query nodes do not import the stack.
SOCKETS = "STACK_SOCKETS"
MUST_SERVE = "STACK_MUST_SERVE"
READINESS_PATH = "/readyz"
POLL_S = 0.1


class Drainable(Protocol):
    """The WSGI application of a worker."""

    is_draining: bool
    """Whether each response closes its connection."""


@dataclass(frozen=True)
class InheritedSockets:
    """The descriptors that this process has inherited.

    sockets: one for each worker, bound and not necessarily listening. must_serve: whether a worker is ready only when the node can answer
        lookups. holder_pid: of the process that holds the sockets. At SIGUSR1, it replaces this server by a new one.
    """

    sockets: tuple[int, ...]
    ready_pipe: int
    drain_pipe: int
    must_serve: bool
    holder_pid: int

    @classmethod
    def of_environment(cls) -> Self | None:
        """Return those that the environment names; None if this process opens its own sockets.

        This process then ends with the one that holds the sockets.
        """
        sockets = os.environ.get(SOCKETS)
        if not sockets:
            return None
        holder = launcher_pid()
        die_with_parent(holder)
        return cls(
            tuple(map(int, sockets.split(","))),
            int(os.environ[READY_PIPE]),
            int(os.environ[DRAIN_PIPE]),
            bool(os.environ[MUST_SERVE]),
            holder,
        )

    def on_drain(self, call: Callable[[], None]) -> None:
        """Have a thread call `call` when the server has to drain."""

        def wait() -> None:
            os.read(self.drain_pipe, 1)  # nothing is ever written to it
            call()

        threading.Thread(target=wait, name="drain", daemon=True).start()


class InheritingServer(MPServer):
    """Granian's server with processes as workers, each on an inherited socket of its own.

    A socket that all workers share would hide a stopped one from the watchdog: others would accept its connections.

    unread_timeout_s: a connection whose client takes nothing of what was sent for this time is reset.
    """

    def __init__(
        self,
        inherited: InheritedSockets,
        unread_timeout_s: float,
        target: str,
        **options: Any,  # noqa: ANN401 - granian's own
    ) -> None:
        super().__init__(target, **options)
        self._inherited = inherited
        self._unread_timeout_s = unread_timeout_s
        # Kept: a holder that is removed closes its socket, on which the next process of a worker listens.
        self._holders = [
            SocketHolder(descriptor, False, self.backlog)  # type: ignore[call-arg]  # noqa: FBT003 - missing in the stub; uds
            for descriptor in inherited.sockets
        ]

    # These two methods are not part of granian's interface: test_inherited_sockets.py fails if it changes them.
    def _init_shared_socket(self) -> None:
        """Do not open sockets."""
        self._ssp = self._sso = None

    def _spawn_worker(  # type: ignore[override]  # as in the class above
        self,
        idx: int,
        target: Any,  # noqa: ANN401 - granian's own
        callback_loader: Callable[[], Drainable],
    ) -> Any:  # noqa: ANN401 - granian's own
        """Create a worker, which granian starts."""
        self._shd = self._holders[idx]  # type: ignore[assignment]  # granian's annotation is missing
        return super()._spawn_worker(idx, target, partial(self._load, idx, os.getpid(), callback_loader))

    def _load(self, worker: int, server_pid: int, load: Callable[[], Drainable]) -> Drainable:
        """Return the application in a worker process, once it is ready. Then granian listens."""
        die_with_parent(server_pid)
        application, inherited = load(), self._inherited
        if inherited.must_serve:
            _wait_until_it_serves(application)
        with socket.socket(fileno=os.dup(inherited.sockets[worker])) as own:
            limit_unread_of(own, self._unread_timeout_s)
        os.write(inherited.ready_pipe, b"%d\n" % worker)
        inherited.on_drain(partial(_drain, inherited.sockets[worker], application))
        return application


def _wait_until_it_serves(application: Any) -> None:  # noqa: ANN401 - a WSGI application
    """Wait until the node is ready. Whoever has started the server ends it if that takes too long."""
    client = Client(application)
    while client.get(READINESS_PATH).status_code != HTTPStatus.OK:
        time.sleep(POLL_S)


def _drain(listening: int, application: Drainable) -> None:
    """Accept no connection, and close each after its next response."""
    application.is_draining = True
    _stop_accepting(listening)


def _stop_accepting(listening: int) -> None:
    """Leave all further connections of a listening socket to the other processes that have it.

    granian accepts until SIGTERM, and then closes connections on which no request has been received yet. So a socket without connections
    takes the place of the real one in all descriptors of this process: granian has a duplicate, and does not expose its number.
    """
    identity = os.fstat(listening).st_ino
    with socket.socket() as without_connections:
        without_connections.bind(("127.0.0.1", 0))
        without_connections.listen()
        without_connections.settimeout(0)
        for path in DESCRIPTORS.iterdir():
            with suppress(OSError):  # closed in the meantime
                if os.fstat(int(path.name)).st_ino == identity:
                    os.dup2(without_connections.fileno(), int(path.name))
