"""Keys in requests, in paths and queries, and the reason for which one is refused."""

from werkzeug.routing import BaseConverter

from include.kafka.record_key import key_fault
from query_api.http.problems import ProblemError


class KeyConverter(BaseConverter):
    """The rest of a path as a key: any characters, slashes and line breaks included, which Flask's own `path` excludes."""

    regex = r"(?s:.*)"
    part_isolating = False
    weight = 200


def require_key(name: str, text: str, max_bytes: int) -> bytes:
    """Return a key that a request names, in UTF-8; raises ProblemError for one that no record has.

    name: of the parameter. max_bytes: the longest key that a store of this node has.
    """
    key = text.encode()
    fault = key_fault(key, max_bytes)
    if fault:
        raise ProblemError(400, f"invalid-{name}", f"{name} {fault}.")
    return key


def require_prefix(name: str, text: str, max_bytes: int) -> bytes:
    """Return the beginning of a key, which may be empty, in UTF-8; raises ProblemError for one that no key has."""
    return require_key(name, text, max_bytes) if text else b""
