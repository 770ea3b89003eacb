"""The HTTP server of a listener of a query node: `python -m query_api.server`. It restarts worker processes that die, and those that do not answer."""

import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.common import AbstractServer

from include.errors import FoldlakeError
from include.nodes.peer_tls import health_context
from include.nodes.placements import placements
from include.observability.logs import configure_logs
from include.settings import Settings
from query_api.certificate_watch import CertificateWatch
from query_api.http.access_log import log_options
from query_api.http.limits.connections import allowed_connections
from query_api.http.limits.worker_watchdog import Worker, WorkerWatchdog
from query_api.http.request_checks import AllowedHosts
from query_api.inherited_sockets import InheritedSockets, InheritingServer
from query_api.listener import Listener, Role, listener_of, require_protection
from query_api.metrics.metric_folders import create_folder
from query_api.store.backends import store_directory

# Of each worker. A request occupies one while it is handled, a connection only then. Requests that wait for something else are limited
# to fewer: lookups that wait for a commit and commands to 64 each by their settings, requests to other nodes to 96 (peers.py). So
# requests of other nodes and health checks always find a thread, and two nodes that ask each other do not wait for each other's threads.
# Streams of changes have as many threads in addition as there may be streams, because WSGI occupies one until a
# response ends; threads are created when they are needed.
THREADS = 256
THREAD_IDLE_S = 30
BACKLOG = 1024
# Of a request's first line and headers; a key has at most 4 KiB, in percent encoding three times as much.
MAX_HEAD_BYTES = 64 * 1024
# A worker ignores stop requests while it starts.
STOP_TIMEOUT_S = 5

log = logging.getLogger(__name__)


def main() -> int:
    """Serve the node that the settings describe until SIGTERM or SIGINT; return the process's exit status."""
    inherited = InheritedSockets.of_environment()
    settings = Settings()
    node = settings.node
    configure_logs(settings.log.format, "server", node.name)
    try:
        # Fail here, once: a failing worker would be restarted endlessly.
        store_directory(settings, placements(settings))
        AllowedHosts(settings)
        warning = require_protection(settings)
        listener = listener_of(settings, Role.of_environment())
        files = listener.files
        watch = None if files is None else CertificateWatch(files, is_final=inherited is None)
        tls_options = listener.tls_options()
        health = None if files is None else health_context(files)
    except FoldlakeError as error:
        log.error("%s", error)  # noqa: TRY400 - operators need the message, not a traceback
        return 1
    if warning:
        log.warning("%s", warning)
    metrics = create_folder(settings.store_dir, listener.role, os.getpid())
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    create_server = (
        Granian if inherited is None else partial(InheritingServer, inherited, node.http_idle_timeout_s)
    )
    server = create_server(
        "query_api.http.wsgi:application",
        factory=True,
        address=node.bind,
        port=listener.port,
        interface=Interfaces.WSGI,
        # With `auto`, which also accepts HTTP/2, a connection on which nothing is sent has no deadline.
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            # From the time at which a connection is idle, so it is the deadline of idle connections too.
            header_read_timeout=int(node.http_idle_timeout_s * 1000),
            max_buffer_size=MAX_HEAD_BYTES,
        ),
        workers=listener.workers,
        blocking_threads=THREADS + node.http_streams,
        blocking_threads_idle_timeout=THREAD_IDLE_S,
        backpressure=allowed_connections(
            node.http_connections, 0 if files is None else node.http_connections
        ),
        backlog=BACKLOG,
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_TIMEOUT_S,
        websockets=False,
        process_name=f"foldlake {listener.name}",
        **tls_options,
        **log_options(settings),
    )
    watchdog = WorkerWatchdog(
        lambda: _processes(server.wrks),
        node.bind,
        listener.port,
        timeout_s=node.http_worker_timeout_s,
        tls=health,
    )
    server.on_startup(watchdog.start)
    if watch is not None:
        server.on_startup(partial(watch.start, partial(_renew, server, listener, inherited)))
    if inherited is not None:
        # Connections of the watchdog reach the workers of the new server only.
        inherited.on_drain(partial(_stop, watchdog, watch))
    server.serve()
    watchdog.stop()
    shutil.rmtree(metrics, ignore_errors=True)
    with suppress(OSError):  # of a server that runs beside this one
        metrics.parent.rmdir()
    return 0


def _renew(server: AbstractServer[Any], listener: Listener, inherited: InheritedSockets | None) -> None:
    """Have the server replaced: by the holder of its sockets, otherwise by new workers."""
    if inherited is not None:
        os.kill(inherited.holder_pid, signal.SIGUSR1)
        return
    options = listener.tls_options()
    # granian resolves links when it is created, also those of a Kubernetes secret, whose targets are removed.
    server.build_ssl_context(
        options["ssl_cert"],
        options["ssl_key"],
        None,
        options["ssl_protocol_min"],
        options.get("ssl_ca"),
        [],
        options.get("ssl_client_verify", False),
    )
    # Under load, a request on a kept connection may fail: granian ends the former workers after a fixed time (decision 73).
    os.kill(os.getpid(), signal.SIGHUP)


def _stop(watchdog: WorkerWatchdog, watch: CertificateWatch | None) -> None:
    watchdog.stop()
    if watch is not None:
        watch.stop()


def _processes(workers: Iterable[Any]) -> list[Worker]:
    """Return the processes of granian's current workers, which its main thread replaces."""
    return [worker.inner for worker in tuple(workers)]


if __name__ == "__main__":
    sys.exit(main())
