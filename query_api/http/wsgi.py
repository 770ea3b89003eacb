"""The WSGI application of a worker process: named lookups in the plain form `GET <path>?<parameter>=<key>`, and Flask behind them.

The same router answers here and behind Flask. Flask's overhead would be several times the cost of the lookup.
"""

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from http.client import responses
from typing import TYPE_CHECKING

from include.declarations.load import load_catalog
from include.nodes.peer_tls import client_tls
from include.nodes.peers import Hop, Peers, ServedOffset
from include.nodes.placements import placements
from include.observability.logs import configure_logs
from include.observability.request_context import (
    CURRENT,
    GIVEN_ID_KEY,
    REQUEST_ID_HEADER,
    REQUEST_ID_KEY,
    ROUTE_KEY,
    id_of,
)
from include.process import die_with_parent
from include.settings import Settings
from query_api.access.credentials import Credentials
from query_api.changes.change_feeds import ChangeFeeds
from query_api.http.access.guard import QUOTA_KEY, Guard
from query_api.http.app import create_app
from query_api.http.delivery.conditional import for_condition
from query_api.http.limits.connections import limit_unread_answers
from query_api.http.lookups.named_lookups import compile_lookups
from query_api.http.lookups.router import OK, LookupRouter
from query_api.http.pages.pages import for_client
from query_api.http.request_checks import AllowedHosts, is_plain
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookups import Lookups
from query_api.metrics.node_metrics import LOOKUP_SECONDS, SPANS_DROPPED

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from query_api.traces.request_traces import RequestTraces

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}
HTTP_OK = "200 OK"
HTTP_NOT_MODIFIED = "304 Not Modified"
HOP_KEY = "HTTP_FOLDLAKE_HOP"
SERVED_KEY = "HTTP_FOLDLAKE_SERVED"
ACCEPT_KEY = "HTTP_ACCEPT"
CONDITION_KEY = "HTTP_IF_NONE_MATCH"
CLOSE = ("Connection", "close")


class FastPath:
    """A WSGI application: answers plain lookups with the router, and forwards all other requests to the Flask application.

    is_draining: whether each response closes its connection, because another server takes over. guard: decides which requests are
    answered; None: all are. names_all: whether the answer of each request has an id; otherwise a plain lookup has one only if its
    client sent it, or if something else needed it.
    """

    def __init__(
        self,
        router: LookupRouter,
        hosts: AllowedHosts,
        application: "WSGIApplication",
        guard: Guard | None = None,
        *,
        names_all: bool = False,
    ) -> None:
        self._reply = router.reply
        self._lookup_at = router.named.get
        self._hosts = hosts
        self._application = application
        self._guard = guard
        self._names_all = names_all
        self.is_draining = False

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        CURRENT.request = environ
        if self.is_draining:
            start_response = _adding(start_response, [CLOSE])
        lookup = self._lookup_at(environ["PATH_INFO"])
        # Once for both: the guard and the fast path.
        is_plain_request = (lookup is not None or self._guard is not None) and is_plain(environ, self._hosts)
        if self._guard is not None:
            refused = self._guard.refusal(environ, is_plain=is_plain_request)
            if QUOTA_KEY in environ:
                start_response = _adding(start_response, environ[QUOTA_KEY])
            if refused is not None:
                status, headers, body = refused
                start_response(f"{status} {responses.get(status, '')}", _with_id(headers, environ))
                return [body]
        if lookup is not None and environ["REQUEST_METHOD"] == "GET" and is_plain_request:
            started_s = time.perf_counter()
            query: str = environ["QUERY_STRING"]
            key = lookup.plain_key(query)
            if key is not None:
                rule = environ.get(HOP_KEY)
                hop = None if rule is None else Hop(rule, ServedOffset.parse(environ.get(SERVED_KEY)))
                target = f"{lookup.path}?{query}"
                status, headers, body = self._reply(
                    lookup.model_name, key, None, None, target, hop, lookup.render
                )
                if status == OK:
                    LOOKUP_SECONDS.observe(time.perf_counter() - started_s)
                    if CONDITION_KEY in environ:
                        status, headers, body = for_condition((status, headers, body), environ[CONDITION_KEY])
                    if self._names_all or GIVEN_ID_KEY in environ or REQUEST_ID_KEY in environ:
                        headers = _with_id(headers, environ)
                    start_response(HTTP_OK if status == OK else HTTP_NOT_MODIFIED, headers)
                else:
                    accept = environ.get(ACCEPT_KEY, "")
                    status, headers, body = for_client((status, headers, body), accept, target)
                    start_response(f"{status} {responses.get(status, '')}", _with_id(headers, environ))
                return [body]
        answer = self._application(environ, _adding(start_response, _with_id([], environ)))
        return answer if self._guard is None else self._guard.while_valid(environ, answer)


class TracedPath(FastPath):
    """A fast path whose requests are traced."""

    def __init__(
        self,
        router: LookupRouter,
        hosts: AllowedHosts,
        application: "WSGIApplication",
        guard: Guard | None,
        traces: "RequestTraces",
    ) -> None:
        super().__init__(router, hosts, application, guard, names_all=True)
        self._traces = traces

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        if self._lookup_at(environ["PATH_INFO"]) is not None:
            environ[ROUTE_KEY] = environ["PATH_INFO"]
        return self._traces.answer(environ, start_response, super().__call__)


def _with_id(headers: list[tuple[str, str]], environ: "WSGIEnvironment") -> list[tuple[str, str]]:
    """Return headers with the request's id. A new list: other responses may have the same one."""
    return [*headers, (REQUEST_ID_HEADER, id_of(environ))]


def _adding(start_response: "StartResponse", added: list[tuple[str, str]]) -> "StartResponse":
    """Return a function that starts a response with further headers."""

    def start(
        status: str,
        headers: list[tuple[str, str]],
        exc_info: "OptExcInfo | None" = None,
        /,
    ) -> Callable[[bytes], object]:
        # A new list: other responses may have the same one.
        return start_response(status, [*headers, *added], exc_info)

    return start


def application() -> FastPath:
    """Return the whole application of the settings; the HTTP server calls this in each worker process.

    Raises ReadModelError or SchemaError when a read model's declarations are not valid, SettingsError for the node's hosts.
    """
    # An orphaned worker would keep answering on a port that another server may have taken over.
    die_with_parent()
    settings = Settings()
    configure_logs(settings.log.format, "http worker", settings.node.name)
    hosts = AllowedHosts(settings)
    catalog = load_catalog(settings.declaration_folders)
    local = LocalLookup(settings, placements(settings))
    local.watch()
    limit_unread_answers(settings.node.http_idle_timeout_s)
    stops: list[Callable[[], None]] = []
    traces = _request_traces(settings, stops) if settings.traces.is_on else None
    lookups = Lookups(local, Peers(client_tls(settings), None if traces is None else traces.ask))
    feeds = ChangeFeeds(settings, local.state)
    _on_stop_signal(feeds.stop, *stops)
    rekeyed = {
        api.model.name: api.model.events_topic for api in catalog.apis if api.model.rekeyed_from is not None
    }
    router = LookupRouter(lookups, compile_lookups(catalog.apis, lookups), rekeyed)
    credentials = Credentials.of(settings) if settings.auth.is_on else None
    app = create_app(settings, hosts, lookups, router, catalog, feeds, credentials)
    guard = None if credentials is None else Guard.of(settings, credentials, app, catalog, hosts)
    if traces is not None:
        return TracedPath(router, hosts, app, guard, traces)
    return FastPath(router, hosts, app, guard, names_all=settings.node.access_log)


def _request_traces(settings: Settings, stops: list[Callable[[], None]]) -> "RequestTraces":
    """Return the traces of requests, and add to `stops` what sends the last spans."""
    # The library costs time and memory, and tracing is rarely on.
    from query_api.traces.request_traces import RequestTraces  # noqa: PLC0415
    from query_api.traces.span_export import tracer_of  # noqa: PLC0415

    tracer, export = tracer_of(settings, "http worker", SPANS_DROPPED.inc)
    stops.append(export.shutdown)
    return RequestTraces(tracer)


def _on_stop_signal(*calls: Callable[[], None]) -> None:
    """Have a thread call `calls` when this process gets a stop signal. Only the main thread may use this.

    The server waits for open responses, and does not tell the application. It has its own handlers for these signals, so Python
    writes each signal's number to a socket instead.
    """
    receiving, sending = socket.socketpair()
    sending.settimeout(0)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(receiving, calls), name="stop signal", daemon=True).start()


def _wait(receiving: socket.socket, calls: Iterable[Callable[[], None]]) -> None:
    while numbers := receiving.recv(64):
        if STOP_SIGNALS & {signal.Signals(number) for number in numbers}:
            for call in calls:
                call()
            return
