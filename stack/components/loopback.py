"""HTTP requests to the stack's own servers, for readiness probes."""

from functools import cache

import httpx

# A readiness probe must return within 2 s (`Process.is_ready`).
PROBE_TIMEOUT_S = 1.5


@cache
def loopback_client() -> httpx.Client:
    """Return this process's client for servers on this machine.

    It bypasses the user's proxy, and opens a connection for each request: a connection that stays open would delay the
    stop of its server.
    """
    return httpx.Client(
        timeout=PROBE_TIMEOUT_S, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
    )
