"""The request that a thread of a query node handles: its id, and what carries the id and the trace to other nodes and into events.

An id is generated when something needs it first, because most lookups need none: the fast path answers them in a few microseconds.
"""

import re
import uuid
from collections.abc import Callable, MutableMapping
from threading import local
from typing import Any, ParamSpec, TypeVar

REQUEST_ID_HEADER = "X-Request-Id"
# Of an event that a command writes: the headers of the record in Kafka.
REQUEST_ID_RECORD_HEADER = "request-id"
TRACEPARENT = "traceparent"
# Where WSGI has the client's id.
GIVEN_ID_KEY = "HTTP_X_REQUEST_ID"
# Where a request's id and trace are; no header of a client has these names.
REQUEST_ID_KEY = "foldlake.request_id"
TRACEPARENT_KEY = "foldlake.traceparent"
# The path of the endpoint that a request has reached, without keys; only while requests are traced.
ROUTE_KEY = "foldlake.route"
MAX_CHARACTERS = 128
# No character that ends a header, a log line or a text in JSON.
WELL_FORMED = re.compile(rf"[A-Za-z0-9._~:/+=@-]{{1,{MAX_CHARACTERS}}}", re.ASCII)

Request = MutableMapping[str, Any]
P = ParamSpec("P")
R = TypeVar("R")


class Current(local):
    """What this thread does. request: the WSGI environment of the request that it handles, or handled last; None for a thread of none."""

    request: Request | None = None


# The fast path sets it for each lookup: a context variable takes twice the time.
CURRENT = Current()


def request_id() -> str:
    """Return the id of this thread's request: the client's if it is well formed, else a generated one. Empty outside a request."""
    request = CURRENT.request
    return "" if request is None else id_of(request)


def id_of(request: Request) -> str:
    """Return the id of a request."""
    known: str | None = request.get(REQUEST_ID_KEY)
    if known is None:
        given = request.get(GIVEN_ID_KEY, "")
        known = request[REQUEST_ID_KEY] = given if WELL_FORMED.fullmatch(given) else uuid.uuid4().hex
    return known


def traceparent() -> str:
    """Return the W3C trace context of this thread's request; empty outside a request, and while requests are not traced."""
    request = CURRENT.request
    return "" if request is None else request.get(TRACEPARENT_KEY, "")


def trace_id() -> str:
    """Return the id of the trace that this thread's request belongs to, in hexadecimal; empty if it belongs to none."""
    parts = traceparent().split("-")
    return parts[1] if len(parts) > 1 else ""


def forwarded_headers() -> str:
    """Return the header lines with which this thread's request continues on another node; empty outside a request."""
    known = request_id()
    if not known:
        return ""
    trace = traceparent()
    return f"{REQUEST_ID_HEADER}: {known}\r\n" + (f"{TRACEPARENT}: {trace}\r\n" if trace else "")


def record_headers() -> dict[str, str | bytes | None]:
    """Return the headers of an event that this thread's request writes, in the type that Kafka's client takes."""
    found = {REQUEST_ID_RECORD_HEADER: request_id(), TRACEPARENT: traceparent()}
    return {name: value for name, value in found.items() if value}


def in_this_request(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that does the same, for another thread, in the name of this thread's request."""
    request = CURRENT.request

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        CURRENT.request, before = request, CURRENT.request
        try:
            return function(*args, **kwargs)
        finally:
            CURRENT.request = before

    return call
