"""HTTP requests of the tests to servers on this machine."""

import httpx

TIMEOUT_S = 10.0


def http_client(timeout_s: float = TIMEOUT_S, *, keep_alive: bool = False) -> httpx.Client:
    """Return a client that uses no proxy and opens a new connection for each request, unless told otherwise.

    A connection that is kept alive fails if its server was killed and restarted in the meantime.
    """
    limits = httpx.Limits() if keep_alive else httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(trust_env=False, timeout=timeout_s, limits=limits)


HTTP = http_client()
