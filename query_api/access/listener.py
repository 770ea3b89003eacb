"""Whom the process of a node serves: callers, or the nodes and jobs of the same deployment; and whether a node may serve callers openly."""

import os
from enum import StrEnum

from include.errors import SettingsError
from include.nodes.node_url import is_loopback, normal_host
from include.settings import Settings

VARIABLE = "FOLDLAKE_STACK_LISTENER"


class Listener(StrEnum):
    """CALLERS: each request proves its caller. PEERS: the connection has proved that it is from a node or a job."""

    CALLERS = "callers"
    PEERS = "peers"

    @classmethod
    def of_environment(cls) -> "Listener":
        """Return the listener that this process serves."""
        return cls(os.environ.get(VARIABLE) or cls.CALLERS)


def require_protection(settings: Settings) -> str:
    """Return a warning for a node that anybody on its network may use as its settings allow; empty for any other node.

    Raises SettingsError for one whose settings do not allow it.
    """
    bind = settings.node.bind
    host = normal_host(f"[{bind}]" if ":" in bind else bind)
    if settings.auth.is_on or (host is not None and is_loopback(host)):
        return ""
    risk = f"FOLDLAKE_NODE_BIND is {bind!r} and FOLDLAKE_AUTH is none: whoever reaches the node may read and write"
    if not settings.auth.allow_open:
        raise SettingsError(
            f"{risk}. Set FOLDLAKE_AUTH=keys and create a key, as docs/security.md describes; or FOLDLAKE_ALLOW_OPEN=yes, on a network "
            "that you trust."
        )
    return f"{risk}. FOLDLAKE_ALLOW_OPEN allows that: see docs/security.md."
