"""The HTTP server of a query node: `python -m query_api.server`. It restarts worker processes that die."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from granian import Granian
from granian.constants import Interfaces

from include.errors import FoldlakeError
from include.settings import Settings
from query_api.http.allowed_hosts import AllowedHosts
from query_api.store.backends import load_backend

METRICS_DIRECTORY = "metrics"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the directory has a private mode
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
    metrics = _metrics_directory(settings.store_dir)
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
    shutil.rmtree(metrics, ignore_errors=True)
    return 0


def _metrics_directory(store_dir: Path) -> Path:
    """Return an empty directory for the workers' counters, in memory where the system has a file system for that.

    The workers map the counters' files, and the kernel kills a process that touches a new page of a mapped file on a full disk.
    """
    node = hashlib.sha256(str(store_dir).encode()).hexdigest()[:16]
    in_memory, on_disk = SHARED_MEMORY / f"foldlake-{os.getuid()}-{node}", store_dir / METRICS_DIRECTORY
    for left_over in (in_memory, on_disk):
        shutil.rmtree(left_over, ignore_errors=True)
    try:
        in_memory.mkdir(mode=0o700)  # fails if another user has created the directory
    except OSError:
        on_disk.mkdir(parents=True)
        return on_disk
    return in_memory


if __name__ == "__main__":
    sys.exit(main())
