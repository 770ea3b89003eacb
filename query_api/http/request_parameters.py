"""Strict parsing of what requests name: query parameters, keys, and the area of `within`."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

from werkzeug.routing import BaseConverter

from include.declarations.api import DECIMALS_PARAMETER, ReadModelApi
from include.kafka.wire_format import key_fault
from query_api.http.problems import ProblemError
from query_api.lookup.bounding_box import Area, BoundingBox, InvalidBoxError

# A percent sign that begins no escape: programs differ in whether it stands for itself.
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
MAX_SHOWN = 200
# Value of `decimals` -> whether decimals are strings.
DECIMAL_FORMS = {None: False, "number": False, "string": True}


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


def has_text_decimals(given: Mapping[str, str]) -> bool:
    """Whether a request asks for exact decimals as strings; raises ProblemError."""
    text = given.get(DECIMALS_PARAMETER)
    if text not in DECIMAL_FORMS:
        raise ProblemError(400, "invalid-decimals", "decimals must be number or string.")
    return DECIMAL_FORMS[text]


MAX_SHOWN_BOX = 100


class Areas:
    """Reads the parameter. One per HTTP worker process."""

    def __init__(self, apis: Iterable[ReadModelApi]) -> None:
        self.locations = {api.model.name: api.location for api in apis if api.location is not None}

    def parse(self, read_model: str, text: str | None) -> Area | None:
        """Return the area that the parameter's value describes, None without one; raises ProblemError."""
        if text is None:
            return None
        location = self.locations.get(read_model)
        if location is None:
            known = ", ".join(sorted(self.locations)) or "none"
            detail = f"{read_model} declares no location, so it takes no `within`. Read models with a location: {known}."
            raise ProblemError(400, "no-location", detail)
        try:
            return Area(location, BoundingBox.parse(text))
        except InvalidBoxError as error:
            detail = f"within is {text[:MAX_SHOWN_BOX]!r}: {error}."
            raise ProblemError(400, "invalid-within", detail) from error
