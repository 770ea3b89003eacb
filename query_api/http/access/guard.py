"""The guard in front of the fast path and of Flask: it finds the caller of each request, and refuses what the caller may not do.

A node without authentication has no guard.
"""

from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from flask import Flask
from werkzeug.http import parse_cookie

from include.access.audit import AuditLog
from include.access.caller import NODE, AccessDeniedError, Caller, Need, authorize
from include.declarations.catalog import Catalog
from include.settings import Settings
from query_api.access.credentials import (
    CredentialError,
    Credentials,
    CredentialsUnavailableError,
    Verified,
)
from query_api.http.access.lasting_body import LastingBody
from query_api.http.access.needs import SAFE_METHODS, Needs
from query_api.http.access.sign_in_page import sign_in_page
from query_api.http.answers import Reply
from query_api.http.delivery.cross_origin import is_preflight, sharing_headers
from query_api.http.limits.rate_limit import CALLER_KEY, RateLimit, rate_exceeded
from query_api.http.pages.pages import HTML, for_client, page_headers, wants_page
from query_api.http.problems import ProblemError, problem_reply
from query_api.http.request_checks import HOST_KEY, ORIGIN_KEY, AllowedHosts, check_request
from query_api.listener import Role

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

# Where the headers are that tell a request's caller the quota; no header of a client has this name.
QUOTA_KEY = "foldlake.quota"
AUTHORIZATION_KEY = "HTTP_AUTHORIZATION"
COOKIE_KEY = "HTTP_COOKIE"
# Only nodes send these headers (include/nodes/peers.py).
PEER_KEYS = ("HTTP_FOLDLAKE_HOP", "HTTP_FOLDLAKE_SERVED")
COOKIE = "foldlake-key"
# With TLS: a browser accepts a cookie with this beginning only for the host itself, and sends it only encrypted.
SECURE_COOKIE = "__Host-foldlake-key"
BEARER = "bearer "
CHALLENGE = ("WWW-Authenticate", 'Bearer realm="foldlake"')
CHALLENGE_INVALID = ("WWW-Authenticate", 'Bearer realm="foldlake", error="invalid_token"')
RETRY_AFTER_S = 1
# Allowed lookups that are remembered: one for each credential and path.
REMEMBERED_LOOKUPS = 4096
NOBODY = "anonymous"
SIGN_IN_ADVICE = "Send the header Authorization: Bearer <API key or token>. A browser signs in at /sign-in."


class Guard:
    """Decides on requests. One per HTTP worker process; thread-safe.

    listener: whom this process serves. audit: where refused requests are recorded. rate_limit: of each caller; None: there is none.
    """

    def __init__(
        self,
        listener: Role,
        credentials: Credentials,
        needs: Needs,
        hosts: AllowedHosts,
        audit: AuditLog,
        rate_limit: RateLimit | None = None,
    ) -> None:
        self._is_for_peers = listener is Role.PEERS
        self._credentials = credentials
        self._needs = needs
        self._lookup_needs = needs.by_path
        self._hosts = hosts
        self._audit = audit
        self._rate_limit = rate_limit
        # By header and path.
        self._allowed: dict[tuple[str, str], Verified] = {}

    @classmethod
    def of(
        cls, settings: Settings, credentials: Credentials, app: Flask, catalog: Catalog, hosts: AllowedHosts
    ) -> "Guard":
        """Return the guard of this process."""
        audit = AuditLog(settings.home, settings.node.name)
        limit = RateLimit.of(settings.auth)
        return cls(Role.of_environment(), credentials, Needs(app, catalog), hosts, audit, limit)

    def refusal(self, environ: "WSGIEnvironment", *, is_plain: bool) -> Reply | None:
        """Return the reply for a request that is refused. None for any other, whose caller is then in `environ`.

        is_plain: as request_checks.is_plain has found.
        """
        if self._is_for_peers:
            environ[CALLER_KEY] = NODE
            return None
        try:
            # Before anything else: the pages of other hosts learn nothing, not even how to sign in.
            if not is_plain:
                check_request(environ, self._hosts)
            _require_no_peer(environ)
            caller = self._caller_before(environ) if is_plain else None
            if caller is None:
                self._decide(environ)
            else:
                environ[CALLER_KEY] = caller
                self._count(environ, caller)
        except ProblemError as problem:
            return self._refused(environ, problem)
        except AccessDeniedError as error:
            return self._refused(environ, ProblemError(403, error.slug, str(error)))
        return None

    def _decide(self, environ: "WSGIEnvironment") -> None:
        """Find the caller of a request, unless anybody may send it; raises ProblemError, and AccessDeniedError if the caller may not."""
        if is_preflight(environ, self._hosts.origins):
            return
        is_open, need = self._need(environ)
        if is_open:
            return
        verified = self._verified(environ)
        environ[CALLER_KEY] = verified.caller
        self._count(environ, verified.caller)
        if need is not None:
            authorize(verified.caller, need)
            self._remember(environ, verified)

    def _caller_before(self, environ: "WSGIEnvironment") -> Caller | None:
        """Return the caller of a lookup that was allowed before, with the same credential, which is still valid; None for any other request."""
        key = (environ.get(AUTHORIZATION_KEY, ""), environ["PATH_INFO"])
        found = self._allowed.get(key)
        if found is None or environ["REQUEST_METHOD"] != "GET":
            return None
        if found.is_valid():
            return found.caller
        self._allowed.pop(key, None)
        return None

    def _remember(self, environ: "WSGIEnvironment", verified: Verified) -> None:
        """Remember an allowed request, if the fast path may answer it; what it needs depends on nothing but its path."""
        path, header = environ["PATH_INFO"], environ.get(AUTHORIZATION_KEY)
        if header is None or path not in self._lookup_needs or environ["REQUEST_METHOD"] != "GET":
            return
        if len(self._allowed) >= REMEMBERED_LOOKUPS:
            self._allowed.clear()
        self._allowed[header, path] = verified

    def while_valid(self, environ: "WSGIEnvironment", body: Iterable[bytes]) -> Iterable[bytes]:
        """Return the body of an answered request, which ends early if its credential expires or is revoked."""
        if self._is_for_peers or CALLER_KEY not in environ:
            return body
        return LastingBody(body, partial(self._is_valid, _credential(environ)))

    def _is_valid(self, credential: str) -> bool:
        try:
            self._credentials.caller(credential)
        except CredentialError:
            return False
        except CredentialsUnavailableError:
            return True
        return True

    def _count(self, environ: "WSGIEnvironment", caller: Caller) -> None:
        """Take a request from the caller's quota; raises ProblemError."""
        if self._rate_limit is not None:
            quota = self._rate_limit.take(caller.name)
            environ[QUOTA_KEY] = self._rate_limit.headers(quota)
            if quota.wait_s:
                raise rate_exceeded(caller.name, quota)

    def _need(self, environ: "WSGIEnvironment") -> tuple[bool, Need | None]:
        # The fast path finds its lookup by the same comparison.
        lookup = self._lookup_needs.get(environ["PATH_INFO"]) if environ["REQUEST_METHOD"] == "GET" else None
        return self._needs.of(environ) if lookup is None else (False, lookup)

    def _verified(self, environ: "WSGIEnvironment") -> Verified:
        """Return what a request's credential proves; raises ProblemError."""
        is_from_cookie = AUTHORIZATION_KEY not in environ
        credential = _credential(environ)
        if not credential:
            detail = (
                "The request has no credential." if is_from_cookie else "Authorization is not a Bearer token."
            )
            raise _unauthenticated(detail)
        try:
            verified = self._credentials.verified(credential)
        except CredentialError as error:
            raise _unauthenticated(str(error)) from error
        except CredentialsUnavailableError as error:
            raise ProblemError(503, "not-ready", str(error), retry_after_s=RETRY_AFTER_S) from error
        if is_from_cookie and environ["REQUEST_METHOD"] not in SAFE_METHODS:
            require_own_origin(environ)
        return verified

    def _refused(self, environ: "WSGIEnvironment", problem: ProblemError) -> Reply:
        caller: Caller | None = environ.get(CALLER_KEY)
        path, query = environ["PATH_INFO"], environ.get("QUERY_STRING", "")
        self._audit.refused(
            NOBODY if caller is None else caller.name,
            credential=None if caller is None else caller.credential or None,
            problem=problem.slug,
            method=environ["REQUEST_METHOD"],
            # As the client sent it; a query may contain what should not be in a log.
            path=path.encode("latin-1", "replace").decode(errors="replace"),
            client=environ.get("REMOTE_ADDR"),
        )
        status, headers, body = problem_reply(problem)
        headers += sharing_headers(environ.get(ORIGIN_KEY), self._hosts.origins)
        accept = environ.get("HTTP_ACCEPT", "")
        if problem.status != HTTPStatus.UNAUTHORIZED:
            return for_client((status, headers, body), accept, path)
        is_invalid = AUTHORIZATION_KEY in environ or cookie_of(environ) is not None
        challenge = CHALLENGE_INVALID if is_invalid else CHALLENGE
        if environ["REQUEST_METHOD"] in SAFE_METHODS and wants_page(accept):
            target = quote(path.encode("latin-1", "replace")) + (f"?{query}" if query else "")
            page = sign_in_page(target, problem.detail if is_invalid else "")
            own = {**page_headers(), "Cache-Control": "no-store", "Vary": "Accept"}
            return status, [("Content-Type", HTML), challenge, *own.items()], page.encode()
        return status, [*headers, challenge], body


def require_own_origin(environ: "WSGIEnvironment") -> None:
    """Raise ProblemError for a request that changes something with a cookie, unless a page of this very host and port sends it.

    A cookie is for all ports of a host, and the pages of all of them count as the same site.
    """
    origin, host = environ.get(ORIGIN_KEY, ""), environ.get(HOST_KEY, "")
    if origin.partition("://")[2].lower() != host.lower() or not host:
        detail = (
            "A request with a cookie that changes something must come from a page of the same host and port."
        )
        raise ProblemError(403, "foreign-origin", detail)


def cookie_of(environ: "WSGIEnvironment") -> str | None:
    """Return the credential in a request's cookie, if any; with TLS, only that of the cookie that needs TLS."""
    header = environ.get(COOKIE_KEY)
    return (parse_cookie(header).get(cookie_name(environ)) or None) if header else None


def is_encrypted(environ: "WSGIEnvironment") -> bool:
    """Whether a request came over TLS."""
    return bool(environ.get("wsgi.url_scheme") == "https")


def cookie_name(environ: "WSGIEnvironment") -> str:
    """Return the name of the cookie of such requests."""
    return SECURE_COOKIE if is_encrypted(environ) else COOKIE


def _credential(environ: "WSGIEnvironment") -> str:
    """Return a request's credential, from the header or, without that, the cookie; empty if it has none."""
    header = environ.get(AUTHORIZATION_KEY)
    if header is None:
        return cookie_of(environ) or ""
    return header[len(BEARER) :].strip() if header[: len(BEARER)].lower() == BEARER else ""


def _require_no_peer(environ: "WSGIEnvironment") -> None:
    if PEER_KEYS[0] in environ or PEER_KEYS[1] in environ:
        detail = "Only nodes send the headers Foldlake-Hop and Foldlake-Served, on the listener for nodes."
        raise ProblemError(403, "peer-header", detail)


def _unauthenticated(detail: str) -> ProblemError:
    return ProblemError(401, "unauthenticated", detail, advice=SIGN_IN_ADVICE)
