"""The spans of requests: of each request that this node answers, and of each that it sends to another node."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from include.observability.request_context import CURRENT, ROUTE_KEY, TRACEPARENT, TRACEPARENT_KEY, id_of

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Where WSGI has the trace context that a client sends.
GIVEN_TRACE_KEYS = {TRACEPARENT: "HTTP_TRACEPARENT", "tracestate": "HTTP_TRACESTATE"}
# What monitoring asks all the time, and what nodes and jobs ask by themselves: the node that a client asks decides for both.
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics", "/metrics/status", "/metrics/stream"})
HOP_KEY = "HTTP_FOLDLAKE_HOP"
FIRST_SERVER_ERROR = 500
_PROPAGATOR = TraceContextTextMapPropagator()
R = TypeVar("R")


def parent_of(fields: dict[str, str]) -> Context:
    """Return the context that `traceparent` and `tracestate` name; an empty one if they are not valid."""
    return _PROPAGATOR.extract(fields, Context())


def traceparent_of(context: SpanContext) -> str:
    """Return the value of `traceparent` that makes a span the parent of others."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


class RequestTraces:
    """Makes the spans of one HTTP worker process. Thread-safe."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def answer(
        self, environ: "WSGIEnvironment", start_response: "StartResponse", application: "WSGIApplication"
    ) -> Iterable[bytes]:
        """Answer a request with the application, in a span that ends when the answer begins."""
        given = {name: environ[key] for name, key in GIVEN_TRACE_KEYS.items() if key in environ}
        if not given and (environ["PATH_INFO"] in UNTRACED or HOP_KEY in environ):
            return application(environ, start_response)
        method = environ["REQUEST_METHOD"]
        span = self._tracer.start_span(method, parent_of(given), SpanKind.SERVER)
        environ[TRACEPARENT_KEY] = traceparent_of(span.get_span_context())

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: "OptExcInfo | None" = None, /
        ) -> Callable[[bytes], object]:
            code = int(status.partition(" ")[0])
            span.set_attribute("http.response.status_code", code)
            if code >= FIRST_SERVER_ERROR:
                span.set_status(StatusCode.ERROR)
            return start_response(status, headers, exc_info)

        try:
            return application(environ, start)
        finally:
            if span.is_recording():
                _describe(span, method, environ)
            span.end()

    def ask(self, url: str, send: Callable[[], R]) -> R:
        """Send a request to the node at this URL, in a span of its own if this thread's request is traced."""
        request = CURRENT.request
        traced: str = "" if request is None else request.get(TRACEPARENT_KEY, "")
        if request is None or not traced:
            return send()
        node = urlsplit(url).netloc
        span = self._tracer.start_span(
            f"GET {node}",
            parent_of({TRACEPARENT: traced}),
            SpanKind.CLIENT,
            {"http.request.method": "GET", "server.address": node},
        )
        id_of(request)
        # Not the request itself: other threads may ask in its name at the same time.
        CURRENT.request = {**request, TRACEPARENT_KEY: traceparent_of(span.get_span_context())}
        try:
            return send()
        except Exception:
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            CURRENT.request = request
            span.end()


def _describe(span: Span, method: str, environ: "WSGIEnvironment") -> None:
    """Name a span by the path that matched, which contains no key."""
    attributes: dict[str, Any] = {"http.request.method": method, "foldlake.request_id": id_of(environ)}
    route = environ.get(ROUTE_KEY)
    if route is not None:
        span.update_name(f"{method} {route}")
        attributes["http.route"] = route
    span.set_attributes(attributes)
