"""The one path that must be fast, answered in front of Flask: a balance, from the own store or from its owner.

Only what goes well is answered here. Everything else (None) is Flask's, which decides anew and renders every error.
"""

import time
from collections.abc import Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

from include.nodes.peers import HOP_OWNER, PeerDownError
from query_api.http import balance_lookup
from query_api.http.answer_headers import headers_of, passed_on
from query_api.lookup.lookup_failures import LookupFailedError
from query_api.lookup.lookups import Lookups
from query_api.metrics.node_metrics import LOOKUP_SECONDS, LOOKUPS_LOCAL_OK, LOOKUPS_PEER_OK

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HTTP_OK = "200 OK"
HOP_KEY = "HTTP_FOLDLAKE_HOP"
_PREFIX = "customerId="
_PREFIX_LENGTH = len(_PREFIX)

Answer = tuple[list[tuple[str, str]], bytes]


class HotPath:
    """A WSGI application: balances itself, all else by the application behind it."""

    def __init__(self, lookups: Lookups, behind: "WSGIApplication") -> None:
        self._lookups = lookups
        self._behind = behind

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        if environ["PATH_INFO"] == balance_lookup.PATH and environ["REQUEST_METHOD"] == "GET":
            began = time.perf_counter()
            answer = self._answer(environ)
            if answer is not None:
                LOOKUP_SECONDS.observe(time.perf_counter() - began)
                start_response(HTTP_OK, answer[0])
                return [answer[1]]
        return self._behind(environ, start_response)

    def _answer(self, environ: "WSGIEnvironment") -> Answer | None:
        query: str = environ["QUERY_STRING"]
        key = key_of(query)
        if key is None:
            return None
        lookups = self._lookups
        try:
            place = lookups.local.place(balance_lookup.MODEL, key)
            if place.is_owned_here or HOP_KEY in environ:
                if environ.get(HOP_KEY) == HOP_OWNER and not place.is_owned_here:
                    return None
                answer = lookups.local.find(place)
                LOOKUPS_LOCAL_OK.inc()
                return headers_of(answer), balance_lookup.body_of(answer)
        except LookupFailedError:
            return None
        if place.owner is None:
            return None
        return self._ask(lookups, place.owner, query)

    @staticmethod
    def _ask(lookups: Lookups, owner: str, query: str) -> Answer | None:
        peer = lookups.peers.at(owner)
        if peer.is_down:
            return None
        try:
            response = peer.get(f"{balance_lookup.PATH}?{query}", HOP_OWNER)
        except PeerDownError:
            return None
        if response.status != HTTPStatus.OK:
            return None
        LOOKUPS_PEER_OK.inc()
        return passed_on(response.headers), response.body


def key_of(query: str) -> bytes | None:
    """Return the key of a query of the plain form `customerId=<id>`; None when it is anything else."""
    if not query.startswith(_PREFIX) or "&" in query or "+" in query:
        return None
    text = query[_PREFIX_LENGTH:]
    if not text.isascii():
        return None
    if "%" in text:
        key = unquote_to_bytes(text)
        if not _is_utf8(key):
            return None
    else:
        key = text.encode("ascii")
    return key if 0 < len(key) <= balance_lookup.MAX_CUSTOMER_ID_BYTES else None


def _is_utf8(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True
