"""An HTTP reply as a value, which the fast path and Flask both send."""

from flask import Response

from query_api.http.answer_headers import CACHE_CONTROL

PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Reply = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""


def flask_response(reply: Reply) -> Response:
    """Convert a reply to a Flask response."""
    status, headers, body = reply
    return Response(body, status=status, headers=headers)


def metrics_response(text: bytes) -> Response:
    """Return a page of metrics in Prometheus' text format."""
    return Response(text, content_type=PROMETHEUS_TYPE, headers=dict([CACHE_CONTROL]))
