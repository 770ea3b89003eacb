"""Cross-origin requests: which pages of other origins may read answers (CORS, the HTTP protocol of the Fetch standard).

A browser sends a preflight before a command, or a request with a header of its own. It sends no cookies to another origin, because no answer
allows credentials.
"""

import re
from typing import TYPE_CHECKING

from flask import Request, Response

from include.errors import SettingsError
from include.nodes.field_names import FIELD_NAMES_HEADER
from include.nodes.node_url import HOST, normal_host
from include.nodes.peers import AS_OF_HEADER, LAG_HEADER, REASON_HEADER, VERSION_HEADER
from include.observability.request_context import REQUEST_ID_HEADER, TRACEPARENT
from query_api.http.answers import NODE_HEADER, POSITION_HEADER

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

VARIABLE = "FOLDLAKE_NODE_ALLOWED_ORIGINS"
ORIGIN = re.compile(rf"https?://{HOST}(?::[0-9]{{1,5}})?", re.ASCII)
ORIGIN_KEY = "HTTP_ORIGIN"
PREFLIGHT_KEY = "HTTP_ACCESS_CONTROL_REQUEST_METHOD"
# Headers that a script may send, and those that it may read, beside the ones that are always allowed.
SENT = (
    *("Authorization", "Content-Type", FIELD_NAMES_HEADER, "If-None-Match", "Last-Event-ID"),
    *(REQUEST_ID_HEADER, TRACEPARENT),
)
READ = (
    *(VERSION_HEADER, POSITION_HEADER, NODE_HEADER, "Foldlake-Role", AS_OF_HEADER, LAG_HEADER, REASON_HEADER),
    *(
        "Deprecation",
        "ETag",
        "Link",
        "Location",
        "Retry-After",
        "Sunset",
        "WWW-Authenticate",
        REQUEST_ID_HEADER,
    ),
)
PREFLIGHT_MAX_AGE_S = 600


def parse_origins(entries: tuple[str, ...]) -> frozenset[str]:
    """Return the origins that the setting lists, as browsers write them; raises SettingsError."""
    for entry in entries:
        if not _is_origin(entry):
            raise SettingsError(
                f"{VARIABLE} contains {entry!r}: list origins such as https://app.example or http://localhost:3000, in lower case, without "
                "paths, separated by commas."
            )
    return frozenset(entries)


def _is_origin(text: str) -> bool:
    matched = ORIGIN.fullmatch(text)
    return matched is not None and normal_host(matched["host"]) is not None and text == text.lower()


def is_preflight(environ: "WSGIEnvironment", origins: frozenset[str]) -> bool:
    """Whether a request is a browser's question whether a page of one of the origins may send another one; it has no credentials."""
    return (
        environ["REQUEST_METHOD"] == "OPTIONS"
        and PREFLIGHT_KEY in environ
        and environ.get(ORIGIN_KEY) in origins
    )


def sharing_headers(origin: str | None, origins: frozenset[str]) -> list[tuple[str, str]]:
    """Return the headers with which a page of this origin may read an answer; none if it is not one of the origins."""
    if origin is None or origin not in origins:
        return []
    return [("Access-Control-Allow-Origin", origin), ("Access-Control-Expose-Headers", ", ".join(READ))]


def share(response: Response, request: Request, origins: frozenset[str]) -> Response:
    """Allow a page of one of the origins to read the response, and answer its preflight."""
    if not origins:
        return response
    response.vary.add("Origin")
    response.headers.extend(sharing_headers(request.headers.get("Origin"), origins))
    if is_preflight(request.environ, origins):
        headers = response.headers
        headers["Access-Control-Allow-Methods"] = ", ".join(sorted(response.allow))
        headers["Access-Control-Allow-Headers"] = ", ".join(SENT)
        headers["Access-Control-Max-Age"] = str(PREFLIGHT_MAX_AGE_S)
    return response
