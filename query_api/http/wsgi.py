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
from query_api.metrics.node_metrics import LOOKUP_SECONDS

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

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
    answered; None: all are.
    """

    def __init__(
        self,
        router: LookupRouter,
        hosts: AllowedHosts,
        application: "WSGIApplication",
        guard: Guard | None = None,
    ) -> None:
        self._reply = router.reply
        self._lookup_at = router.named.get
        self._hosts = hosts
        self._application = application
        self._guard = guard
        self.is_draining = False

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
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
                start_response(f"{status} {responses.get(status, '')}", headers)
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
                    start_response(HTTP_OK if status == OK else HTTP_NOT_MODIFIED, headers)
                else:
                    accept = environ.get(ACCEPT_KEY, "")
                    status, headers, body = for_client((status, headers, body), accept, target)
                    start_response(f"{status} {responses.get(status, '')}", headers)
                return [body]
        answer = self._application(environ, start_response)
        return answer if self._guard is None else self._guard.while_valid(environ, answer)


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
    hosts = AllowedHosts(settings)
    catalog = load_catalog(settings.declaration_folders)
    local = LocalLookup(settings, placements(settings))
    local.watch()
    limit_unread_answers(settings.node.http_idle_timeout_s)
    lookups = Lookups(local, Peers(client_tls(settings)))
    feeds = ChangeFeeds(settings, local.state)
    _on_stop_signal(feeds.stop)
    rekeyed = {
        api.model.name: api.model.events_topic for api in catalog.apis if api.model.rekeyed_from is not None
    }
    router = LookupRouter(lookups, compile_lookups(catalog.apis, lookups), rekeyed)
    credentials = Credentials.of(settings) if settings.auth.is_on else None
    app = create_app(settings, hosts, lookups, router, catalog, feeds, credentials)
    guard = None if credentials is None else Guard.of(settings, credentials, app, catalog, hosts)
    return FastPath(router, hosts, app, guard)


def _on_stop_signal(call: Callable[[], None]) -> None:
    """Have a thread call `call` when this process gets a stop signal. Only the main thread may use this.

    The server waits for open responses, and does not tell the application. It has its own handlers for these signals, so Python
    writes each signal's number to a socket instead.
    """
    receiving, sending = socket.socketpair()
    sending.settimeout(0)
    signal.set_wakeup_fd(sending.detach(), warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(receiving, call), name="stop signal", daemon=True).start()


def _wait(receiving: socket.socket, call: Callable[[], None]) -> None:
    while numbers := receiving.recv(64):
        if STOP_SIGNALS & {signal.Signals(number) for number in numbers}:
            call()
            return
