"""A real server without a supervisor, as the embedded stack runs it, for tests that stop, kill or empty it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valkey import Valkey

from include.settings import Settings
from query_api.store.redis.server import Client
from stack.components import redis
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

DEADLINE_S = 60.0


class RedisProcess:
    """The server of these settings. client: to look into it, and to empty it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.url = settings.redis.url.get_secret_value()
        self.client: Client = Valkey(port=settings.redis.port)
        redis.prepare(settings)
        (self._definition,) = redis.processes(settings)
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(self._definition.command, stdout=subprocess.DEVNULL)
        wait_until(self._definition.is_ready, "the server answers", DEADLINE_S)
        return process

    def kill(self) -> None:
        """Kill it with -9."""
        self._process.kill()
        self._process.wait(DEADLINE_S)

    def stop(self) -> None:
        """Stop it with SIGTERM: it writes its copy."""
        self._process.terminate()
        self._process.wait(DEADLINE_S)

    def restart(self) -> None:
        """Start it again, with the copy that it has written last, if any."""
        self._process = self._start()


@contextmanager
def redis_process(home: Path) -> Iterator[RedisProcess]:
    """Run a server on a free port, with its folder in this home."""
    server = RedisProcess(Settings.of(home=home, redis_embedded="on", redis_port=free_ports(1)[0]))
    try:
        yield server
    finally:
        server.kill()
