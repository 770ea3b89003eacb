"""Compresses answers for clients that accept gzip. Plain lookups are too short for it, and streams are sent as they come."""

import gzip
from http import HTTPStatus

from flask import Request, Response

GZIP = "gzip"
# A shorter answer fits into one packet anyway.
MIN_BYTES = 1400
# The fastest level takes about 10 ms for a megabyte of JSON, and leaves a tenth of it.
LEVEL = 1
TYPES = frozenset(
    {
        "application/json",
        "image/svg+xml",
        "text/css",
        "text/html",
        "text/javascript",
        "text/plain",
    }
)
# Browsers send some twenty.
MAX_ACCEPT_CHARACTERS = 200


def compress(response: Response, request: Request) -> Response:
    """Return the response, compressed if its client accepts that."""
    if (
        response.mimetype not in TYPES
        or response.is_streamed
        or response.status_code != HTTPStatus.OK
        or "Content-Encoding" in response.headers
    ):
        return response
    body = response.get_data()
    if len(body) < MIN_BYTES:
        return response
    response.vary.add("Accept-Encoding")
    if not _accepts_gzip(request):
        return response
    response.set_data(gzip.compress(body, LEVEL, mtime=0))
    response.headers["Content-Encoding"] = GZIP
    tag, is_weak = response.get_etag()
    if tag is not None and not is_weak:
        # A strong tag would name the bytes, which now are others.
        response.set_etag(tag, weak=True)
    return response


def _accepts_gzip(request: Request) -> bool:
    given = request.headers.get("Accept-Encoding", "")
    return (
        GZIP in given and len(given) <= MAX_ACCEPT_CHARACTERS and request.accept_encodings.quality(GZIP) > 0
    )
