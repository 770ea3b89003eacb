"""An HTTP reply as a value, which the fast path and Flask both send."""

from flask import Response

Reply = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""


def flask_response(reply: Reply) -> Response:
    """Convert a reply to a Flask response."""
    status, headers, body = reply
    return Response(body, status=status, headers=headers)
