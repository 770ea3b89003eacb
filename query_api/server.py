"""The HTTP server of a query node: `python -m query_api.server`. It restarts worker processes that die."""

import os
import shutil
import sys

from granian import Granian
from granian.constants import Interfaces

from include.errors import FoldlakeError
from include.settings import Settings
from query_api.http.allowed_hosts import AllowedHosts
from query_api.store.backends import load_backend

METRICS_DIRECTORY = "metrics"
# A proxied lookup occupies its thread until the owner answers. With too few threads, two nodes that proxy to each
# other could deadlock with all threads in use.
CONNECTIONS_PER_WORKER = 256
BACKLOG = 1024
THREAD_IDLE_S = 30
# A worker ignores stop requests while it starts.
STOP_TIMEOUT_S = 5


def main() -> int:
    """Serve the node that the settings describe until SIGTERM or SIGINT; return the process's exit status."""
    settings = Settings()
    try:
        # Fail here, once: a failing worker would be restarted endlessly.
        load_backend(settings.node)
        AllowedHosts(settings.node)
    except FoldlakeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    metrics = settings.store_dir / METRICS_DIRECTORY
    shutil.rmtree(metrics, ignore_errors=True)
    metrics.mkdir(parents=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    Granian(
        "query_api.http.wsgi:application",
        address=settings.node.bind,
        port=settings.node.port,
        interface=Interfaces.WSGI,
        workers=settings.node.http_workers,
        blocking_threads=CONNECTIONS_PER_WORKER,
        blocking_threads_idle_timeout=THREAD_IDLE_S,
        backpressure=CONNECTIONS_PER_WORKER,
        backlog=BACKLOG,
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_TIMEOUT_S,
        websockets=False,
        process_name=f"foldlake {settings.node.name} http",
    ).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
