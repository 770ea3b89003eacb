"""What every request must satisfy before it is routed: the hosts that it names, and one way to find the end of its body.

The hosts at which clients may address this node protect it from the web pages that a browser on its network shows. A page reaches a
node through its visitor's browser, by a form or a script, or because the page's own host name resolves to the node's address (DNS
rebinding). The browser then names the page's host, not the node's, in the headers Origin or Host.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from include.nodes.node_url import (
    DEFAULT_PORTS,
    HOST,
    HostList,
    NodeUrl,
    is_loopback,
    normal_host,
    reachable_url,
)
from include.settings import Settings
from query_api.http.delivery.cross_origin import parse_origins
from query_api.http.problems import ProblemError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

VARIABLE = "FOLDLAKE_NODE_ALLOWED_HOSTS"
AUTHORITY = re.compile(rf"{HOST}(?::(?P<port>[0-9]{{0,5}}))?", re.ASCII)
SCHEMES = frozenset({"http", "https"})
# Every lookup checks its Host; a node has few names.
CACHED_HOSTS = 64


class AllowedHosts:
    """Loopback with any port, the host and port of the node's URLs, and the hosts that the setting lists, with any port.

    accepts: whether a Host header, `host` or `host:port`, names one of them. origins: those of other sites whose pages may send requests.
    """

    def __init__(self, settings: Settings) -> None:
        """Read the settings; raises SettingsError."""
        self._own = {reachable_url(settings), NodeUrl.parse(settings.advertised_url)}
        self._listed = HostList.parse(settings.node.allowed_hosts, VARIABLE)
        self.origins = parse_origins(settings.node.allowed_origins)
        self.accepts = lru_cache(maxsize=CACHED_HOSTS)(self._accepts)

    def _accepts(self, authority: str) -> bool:
        matched = AUTHORITY.fullmatch(authority)
        host = normal_host(matched["host"]) if matched else None
        if matched is None or host is None:
            return False
        if is_loopback(host) or host in self._listed:
            return True
        port = matched["port"]
        return any(
            host == own.host and int(port or DEFAULT_PORTS[own.scheme]) == own.port for own in self._own
        )

    def accepts_origin(self, origin: str) -> bool:
        """Whether an Origin header names one of them; `null`, that of a page without an origin, does not."""
        if origin in self.origins:
            return True
        scheme, _, authority = origin.partition("://")
        return scheme in SCHEMES and self.accepts(authority)


HOST_KEY = "HTTP_HOST"
ORIGIN_KEY = "HTTP_ORIGIN"
TRANSFER_ENCODING_KEY = "HTTP_TRANSFER_ENCODING"
LENGTH_KEY = "CONTENT_LENGTH"
PATH_KEY = "PATH_INFO"
# Files have tags, which take precedence, so their dates may be ignored (RFC 9110, section 13). Werkzeug fails at a date beyond the year 9999.
DATE_KEYS = ("HTTP_IF_MODIFIED_SINCE", "HTTP_IF_UNMODIFIED_SINCE", "HTTP_IF_RANGE")
MAX_SHOWN = 100


def is_plain(environ: "WSGIEnvironment", hosts: AllowedHosts) -> bool:
    """Whether a request passes for sure: it names an allowed host, no origin, and no transfer encoding."""
    return (
        hosts.accepts(environ.get(HOST_KEY, ""))
        and ORIGIN_KEY not in environ
        and TRANSFER_ENCODING_KEY not in environ
    )


def check_request(environ: "WSGIEnvironment", hosts: AllowedHosts) -> None:
    """Raise ProblemError for a request of a foreign page, and for one whose body or path could be read in two ways.

    Removes conditions on dates from the request.
    """
    host, origin = environ.get(HOST_KEY, ""), environ.get(ORIGIN_KEY)
    if not hosts.accepts(host):
        raise _foreign("foreign-host", "Host", host)
    if origin is not None and not hosts.accepts_origin(origin):
        raise _foreign("foreign-origin", "Origin", origin)
    if LENGTH_KEY in environ and TRANSFER_ENCODING_KEY in environ:
        # A proxy in between may have read another body (RFC 9112, section 6.1). The server closes the connection by itself.
        detail = "The request has both Content-Length and Transfer-Encoding: send only Content-Length."
        raise ProblemError(400, "ambiguous-length", detail)
    for name in DATE_KEYS:
        environ.pop(name, None)
    try:
        # WSGI decodes the bytes of a path as Latin-1. Flask would replace those that are not UTF-8, and find another key's record.
        environ[PATH_KEY].encode("latin-1").decode()
    except UnicodeError as error:
        detail = "The path is not UTF-8 in percent encoding."
        raise ProblemError(400, "invalid-path", detail) from error


def _foreign(slug: str, header: str, value: str) -> ProblemError:
    detail = (
        f"The header {header} is {value[:MAX_SHOWN]!r}, which is not a host of this node: use its URL or a loopback address, "
        f"or add the host to {VARIABLE}."
    )
    return ProblemError(403, slug, detail)
