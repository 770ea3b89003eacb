"""The servers that a command needs: one that is not up ends the command at once, not after the timeouts of its clients."""

import socket
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from include.errors import FoldlakeError

if TYPE_CHECKING:
    from include.settings import Settings

KAFKA, REGISTRY, AIRFLOW = "Kafka", "The schema registry", "Airflow"
CONNECT_TIMEOUT_S = 1.0


class NotUpError(FoldlakeError):
    """A server that the command needs accepts no connections."""


def with_servers(command: Callable[..., None], needed: tuple[str, ...]) -> Callable[..., None]:
    """Return the command with a check of these servers before it; its parameters stay the same."""
    if not needed:
        return command

    @wraps(command)
    def checked(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - the command's own
        from include.settings import Settings

        require_up(Settings(), needed)
        command(*arguments, **options)

    return checked


def is_up(settings: "Settings", name: str) -> bool:
    """Return whether a server accepts connections; of several brokers, one is enough."""
    return any(_accepts(host, port) for host, port in _addresses(settings, name))


def require_up(settings: "Settings", needed: tuple[str, ...]) -> None:
    """Raise NotUpError if one of these servers accepts no connection; of several brokers, one is enough."""
    for name in needed:
        if not is_up(settings, name):
            addresses = _addresses(settings, name)
            where = ", ".join(f"{host}:{port}" for host, port in addresses)
            is_embedded = all(host in {"127.0.0.1", "localhost", "::1"} for host, _ in addresses)
            hint = (
                "The stack is not up, or is starting: `./foldlake up` starts it, `./foldlake status` shows it."
                if is_embedded
                else "Check that it runs, and its address in the settings."
            )
            raise NotUpError(f"{name} does not respond at {where}. {hint}")


def _addresses(settings: "Settings", name: str) -> list[tuple[str, int]]:
    if name == KAFKA:
        pairs = (text.strip().rpartition(":") for text in settings.kafka.bootstrap_servers.split(","))
        return [(host.strip("[]"), int(port)) for host, _, port in pairs]
    url = urlsplit(settings.registry.url if name == REGISTRY else settings.airflow.base_url)
    return [(url.hostname or "", url.port or (443 if url.scheme == "https" else 80))]


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S):
            return True
    except OSError:
        return False
