"""Strict parsing of a request's query parameters."""

import re
from urllib.parse import unquote_to_bytes

from query_api.http.problems import ProblemError

# A percent sign that begins no escape: programs differ in whether it stands for itself.
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
MAX_SHOWN = 200


def parameters(query_string: str, allowed: frozenset[str]) -> dict[str, str]:
    """Return a query string's parameters; raises ProblemError for unknown, repeated or undecodable ones."""
    if BAD_ESCAPE.search(query_string):
        raise ProblemError(400, "invalid-query", "The query string has a % that begins no escape: write %25.")
    found: dict[str, list[str]] = {}
    try:
        for part in query_string.split("&"):
            name, _, value = part.partition("=")
            if part:
                found.setdefault(_text(name), []).append(_text(value))
    except UnicodeDecodeError as error:
        raise ProblemError(
            400, "invalid-query", "The query string is not UTF-8 in percent encoding."
        ) from error
    unknown = sorted(found.keys() - allowed)
    if unknown:
        detail = f"Unknown: {', '.join(unknown)[:MAX_SHOWN]}; allowed: {', '.join(sorted(allowed))}."
        raise ProblemError(400, "unknown-parameter", detail)
    repeated = sorted(name for name, values in found.items() if len(values) > 1)
    if repeated:
        raise ProblemError(400, "repeated-parameter", f"Given more than once: {', '.join(repeated)}.")
    return {name: values[0] for name, values in found.items()}


def _text(encoded: str) -> str:
    # WSGI decodes raw bytes as Latin-1. Invalid UTF-8 raises here; urllib's parse_qs would replace it.
    return unquote_to_bytes(encoded.replace("+", " ").encode("latin-1")).decode()
