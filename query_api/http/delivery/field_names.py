"""The names of fields in answers: camelCase; for clients of earlier releases snake_case, with the headers of what is deprecated.

A client says which by the parameter `fieldNames`, or by the header of nodes and jobs.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

from flask import Request, Response

from include.nodes.field_names import FIELD_NAMES_HEADER, FIELD_NAMES_PARAMETER, FieldNames, renamed
from include.nodes.peers import HOP_HEADER
from query_api.http.answers import CACHE_CONTROL, CONTENT_TYPE
from query_api.http.json_text import dumps
from query_api.http.problems import ProblemError

# Since when old names are deprecated, and when they can be removed at the earliest (docs/api.md, Deprecations).
DEPRECATED = datetime(2026, 12, 1, tzinfo=UTC)
SUNSET = datetime(2027, 6, 1, tzinfo=UTC)
# RFC 9745 and RFC 8594.
DEPRECATION = (
    ("Deprecation", f"@{DEPRECATED.timestamp():.0f}"),
    ("Sunset", format_datetime(SUNSET, usegmt=True)),
    ("Link", '</docs>; rel="deprecation"; type="text/html"'),
)
Headers = Iterable[tuple[str, str]]


def requested_names(request: Request) -> FieldNames:
    """Return the names that a client asks for; raises ProblemError.

    A node or job that does not say has an earlier release, and reads only the old names.
    """
    text = request.args.get(FIELD_NAMES_PARAMETER, request.headers.get(FIELD_NAMES_HEADER))
    if text is None:
        return FieldNames.SNAKE if HOP_HEADER in request.headers else FieldNames.CAMEL
    try:
        return FieldNames(text)
    except ValueError as error:
        allowed = " or ".join(FieldNames)
        raise ProblemError(
            400, "invalid-field-names", f"{FIELD_NAMES_PARAMETER} must be {allowed}."
        ) from error


def names_headers(style: FieldNames, request: Request) -> Headers:
    """Return the headers of an answer with these names: its client learns that the old ones are deprecated."""
    return DEPRECATION if style is FieldNames.SNAKE and HOP_HEADER not in request.headers else ()


def document_response(
    document: Any,  # noqa: ANN401 - JSON of any shape
    request: Request,
    headers: Headers = (CACHE_CONTROL,),
    status: int = HTTPStatus.OK,
) -> Response:
    """Return a document as JSON with the names that the client asks for; raises ProblemError."""
    style = requested_names(request)
    response = Response(dumps(renamed(document, style)), status, dict([CONTENT_TYPE, *headers]))
    response.headers.extend(names_headers(style, request))
    response.vary.add(FIELD_NAMES_HEADER)
    return response
