"""Granian on inherited sockets with a small application, for tests: `python -m tests.support.http.inheriting_server` on a socket holder."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from granian.constants import Interfaces

from query_api.http.wsgi import FastPath
from query_api.inherited_sockets import InheritedSockets, InheritingServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

WORKERS = 2


def application() -> FastPath:
    """Return an application that responds with the name of its server and the number of its process.

    `/readyz` fails until the file `READY_FILE` exists.
    """
    no_lookups: Any = SimpleNamespace(reply=None, named={})
    return FastPath(no_lookups, cast("Any", None), _respond)


def _respond(environ: "WSGIEnvironment", start_response: "StartResponse") -> list[bytes]:
    is_ready = environ["PATH_INFO"] != "/readyz" or Path(os.environ["READY_FILE"]).exists()
    start_response("200 OK" if is_ready else "503 Service Unavailable", [("Content-Type", "text/plain")])
    return [f"{os.environ['NAME']} {os.getpid()}".encode()]


def serve() -> None:
    """Serve until SIGTERM."""
    inherited = InheritedSockets.of_environment()
    assert inherited is not None
    target = "tests.support.http.inheriting_server:application"
    options = {"interface": Interfaces.WSGI, "blocking_threads": 16, "workers_kill_timeout": 5}
    InheritingServer(
        inherited, 30.0, target, factory=True, workers=WORKERS, respawn_failed_workers=True, **options
    ).serve()


if __name__ == "__main__":
    serve()
