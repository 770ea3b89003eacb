"""The fast path in front of Flask: named lookups in the plain form `GET <path>?<parameter>=<key>`.

The same router answers here and behind Flask. Flask's overhead would be several times the cost of the lookup.
"""

import time
from collections.abc import Iterable
from http.client import responses
from typing import TYPE_CHECKING

from include.nodes.peers import Hop, ServedOffset
from query_api.http.allowed_hosts import AllowedHosts
from query_api.http.lookups.router import OK, LookupRouter
from query_api.http.pages.error_pages import for_client
from query_api.http.request_checks import is_plain
from query_api.metrics.node_metrics import LOOKUP_SECONDS

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HTTP_OK = "200 OK"
HOP_KEY = "HTTP_FOLDLAKE_HOP"
SERVED_KEY = "HTTP_FOLDLAKE_SERVED"
ACCEPT_KEY = "HTTP_ACCEPT"


class FastPath:
    """A WSGI application: answers plain lookups with the router, and forwards all other requests to the Flask application."""

    def __init__(self, router: LookupRouter, hosts: AllowedHosts, application: "WSGIApplication") -> None:
        self._reply = router.reply
        self._lookup_at = router.named.get
        self._hosts = hosts
        self._application = application

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        lookup = self._lookup_at(environ["PATH_INFO"])
        if lookup is not None and environ["REQUEST_METHOD"] == "GET" and is_plain(environ, self._hosts):
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
                    start_response(HTTP_OK, headers)
                else:
                    accept = environ.get(ACCEPT_KEY, "")
                    status, headers, body = for_client((status, headers, body), accept, target)
                    start_response(f"{status} {responses.get(status, '')}", headers)
                return [body]
        return self._application(environ, start_response)
