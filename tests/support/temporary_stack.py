"""A whole stack of its own, on free ports, for as long as a block of code runs: what integration tests run against."""

import logging
import random
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from include.settings import Settings
from stack.lifecycle import start
from stack.stack_guard import guarded

# Below the ports that Linux gives to outgoing connections (32768 and up): those come and go unseen.
FIRST_PORT, LAST_PORT = 23000, 31999


def free_ports(count: int) -> list[int]:
    """Return that many ports on which nobody listens now."""
    ports: list[int] = []
    for port in random.sample(range(FIRST_PORT, LAST_PORT + 1), LAST_PORT - FIRST_PORT + 1):
        if _is_free(port):
            ports.append(port)
            if len(ports) == count:
                break
    return ports


def temporary_settings(home: Path, **overrides: object) -> Settings:
    """Return settings with free ports and this home; a `.env` file plays no part."""
    kafka, controller, registry, airflow, first_node, second_node = free_ports(6)
    values: dict[str, object] = {
        "home": home,
        "kafka_port": kafka,
        "kafka_controller_port": controller,
        "registry_port": registry,
        "airflow_port": airflow,
        "query_ports": (first_node, second_node),
        **overrides,
    }
    return Settings.of(**values)


@contextmanager
def temporary_stack(
    only: Sequence[str] = (), keep_home: Callable[[], bool] = lambda: False, **overrides: object
) -> Iterator[Settings]:
    """Run a stack in a new directory; stopped when the block ends, or this process does.

    Args:
        only: components to start at once, as for `stack.start`; the others can be started later.
        keep_home: asked at the end whether its directory, with the logs, stays.
        overrides: settings by variable, such as `kafka_port`.
    """
    home = Path(tempfile.mkdtemp(prefix="foldlake-"))
    settings = temporary_settings(home, **overrides)
    with guarded(settings):
        start(settings, only)
        yield settings
    # Not reached when the block raised: the logs are worth keeping then.
    if keep_home():
        logging.getLogger(__name__).warning("The stack's logs are kept in %s", home / "logs")
    else:
        shutil.rmtree(home, ignore_errors=True)


def _is_free(port: int) -> bool:
    with closing(socket.socket()) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
