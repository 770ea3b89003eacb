"""Reads a command's body, and refuses one that is not JSON or not complete: nothing is written from a part of a command."""

import re

from flask import Request

from query_api.http.limits.body_deadline import BodyDeadline, BodyTimeoutError
from query_api.http.problems import ProblemError

MEDIA_TYPE = "application/json"
CHARSET, IDENTITY = "utf-8", "identity"
MAX_SHOWN = 40
MAX_BODY_BYTES = 16 * 1024
LENGTH = re.compile(r"[0-9]{1,18}")


def complete_body(request: Request, deadline: BodyDeadline) -> bytes:
    """Return the request's body, exactly as long as its Content-Length.

    The server hands on the part of a body that arrived before the client disconnected, and only Content-Length reveals that
    it is a part; a body in chunks would look complete. Raises ProblemError.
    """
    _check_form(request)
    length = _declared_length(request)
    if length > MAX_BODY_BYTES:
        detail = f"The body has more than {MAX_BODY_BYTES} bytes. Nothing was written."
        raise ProblemError(413, "body-too-large", detail)
    body = _read(request, length, deadline) if length else b""
    if len(body) != length:
        detail = f"The body has {len(body)} bytes; Content-Length says {length}. Nothing was written."
        raise ProblemError(400, "incomplete-body", detail)
    return body


def _check_form(request: Request) -> None:
    """Raise ProblemError unless the body is said to be JSON in UTF-8, as it is."""
    charset = request.mimetype_params.get("charset", CHARSET)
    encoding = request.headers.get("Content-Encoding", IDENTITY)
    if request.mimetype != MEDIA_TYPE:
        detail = f"A command needs the header Content-Type: {MEDIA_TYPE}."
    elif charset.lower() != CHARSET:
        detail = f"The body is said to be in {charset[:MAX_SHOWN]!r}: JSON is sent in UTF-8."
    elif encoding.strip().lower() != IDENTITY:
        detail = (
            f"The body has the content encoding {encoding[:MAX_SHOWN]!r}: send it without Content-Encoding."
        )
    else:
        return
    raise ProblemError(415, "unsupported-media-type", f"{detail} Nothing was written.")


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
