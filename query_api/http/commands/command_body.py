"""Reads a command's body, and refuses one that is not JSON or not complete: nothing is written from a part of a command."""

import re

from flask import Request

from query_api.http.limits.body_deadline import BodyDeadline, BodyTimeoutError
from query_api.http.problems import ProblemError

MEDIA_TYPE = "application/json"
MAX_BODY_BYTES = 16 * 1024
LENGTH = re.compile(r"[0-9]{1,18}")


def complete_body(request: Request, deadline: BodyDeadline) -> bytes:
    """Return the request's body, exactly as long as its Content-Length.

    The server hands on the part of a body that arrived before the client disconnected, and only Content-Length reveals that
    it is a part; a body in chunks would look complete. Raises ProblemError.
    """
    if request.mimetype != MEDIA_TYPE:
        detail = f"A command needs the header Content-Type: {MEDIA_TYPE}. Nothing was written."
        raise ProblemError(415, "unsupported-media-type", detail)
    length = _declared_length(request)
    if length > MAX_BODY_BYTES:
        detail = f"The body has more than {MAX_BODY_BYTES} bytes. Nothing was written."
        raise ProblemError(413, "body-too-large", detail)
    body = _read(request, length, deadline) if length else b""
    if len(body) != length:
        detail = f"The body has {len(body)} bytes; Content-Length says {length}. Nothing was written."
        raise ProblemError(400, "incomplete-body", detail)
    return body


def _read(request: Request, length: int, deadline: BodyDeadline) -> bytes:
    try:
        return deadline.read(request.stream, length, request.remote_addr or "")
    except BodyTimeoutError as error:
        detail = f"The body was not complete within {deadline.timeout_s:g} s. Nothing was written."
        raise ProblemError(408, "body-timeout", detail) from error


def _declared_length(request: Request) -> int:
    if "Transfer-Encoding" in request.headers:
        detail = "Send the body with Content-Length, without Transfer-Encoding. Nothing was written."
        raise ProblemError(400, "transfer-encoding", detail)
    text = request.environ.get("CONTENT_LENGTH", "")
    if not LENGTH.fullmatch(text):
        raise ProblemError(
            411, "length-required", "A command needs the header Content-Length. Nothing was written."
        )
    return int(text)
