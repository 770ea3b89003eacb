"""The HTTP server of a query node: `python -m query_api.server`. Its workers are processes, respawned when they die."""

import os
import shutil

from granian import Granian
from granian.constants import Interfaces

from include.settings import Settings

METRICS_DIRECTORY = "metrics"
# A lookup that is passed on to its owner keeps its thread until the owner has answered. Were threads fewer than
# connections, two nodes could keep each other waiting, each with all its threads.
CONNECTIONS_PER_WORKER = 256
BACKLOG = 1024
THREAD_IDLE_S = 30
# A worker that is told to stop while it is still starting does not hear it.
STOP_TIMEOUT_S = 5


def main() -> None:
    """Serve the node that the settings describe, until told to stop."""
    settings = Settings()
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


if __name__ == "__main__":
    main()
