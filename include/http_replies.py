"""How replies and addresses of other HTTP servers are read. Standard library only."""

import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import urlsplit, urlunsplit

# A server that is wrong about its own recovery must not stop its callers for longer.
MAX_RETRY_AFTER_S = 60.0
# The server, or a proxy in front of it, could not serve the request just then: the same request may succeed.
BUSY = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
# The server does not know the caller, or does not let it do this.
REFUSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


def retry_after_s(header: str | None) -> float | None:
    """Return the seconds of a header `Retry-After`, a number or a date (RFC 9110, 10.2.3), within 0 and MAX_RETRY_AFTER_S.

    None for no header, or an invalid one.
    """
    if header is None:
        return None
    try:
        seconds = float(header) if header.strip().isdecimal() else _seconds_until(header)
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def _seconds_until(date: str) -> float:
    moment = parsedate_to_datetime(date)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - time.time()


def is_json(content_type: str | None) -> bool:
    """Return whether a reply with this header `Content-Type` is JSON. A proxy's page is HTML."""
    return content_type is not None and "json" in content_type


def without_credentials(url: str) -> str:
    """Return a URL as it may be shown: without a user's name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
