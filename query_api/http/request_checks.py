"""What every request must satisfy before it is routed: the hosts that it names, and one way to find the end of its body."""

from typing import TYPE_CHECKING

from query_api.http.allowed_hosts import VARIABLE, AllowedHosts
from query_api.http.problems import ProblemError

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

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
