"""Compares an output with that of a page by its form: names and words count; numbers, times and ids do not."""

import json
import re
from collections.abc import Iterator
from typing import Any

# Values that differ from run to run, the longest forms first.
VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # an id
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?"
    r'|"\d+-[\d.]+-[0-9a-f]+"'  # an ETag
    r"|\bv?\d[\d.,:]*\b|\bnode-N\b"
)
UNIT = re.compile(r"#(?: |-)*(?:ms|s|min|h|d|KB|MB|GB)\b")
# A number of 1 in one output can be another in the next.
PLURAL = re.compile(r"(?<=# )(event|record|row)s?\b")
ROLE = re.compile(r"\b(?:owner|standby)\b")
# A field of an event of a stream that is a JSON document.
DATA = "data: "
# JSON that a page wraps.
WRAPPED = re.compile(r",\n *(?=[\"{])")
HEADER = re.compile(r"[\w-]+: \S")
# Short ones can occur by chance in a later command.
LONG_VALUE = 5
ELLIPSIS = re.compile(r",?\s*\.\.\.")


def difference(expected: str, actual: str) -> str:
    """Return in which way an output has another form than that of a page; empty if it has the same.

    Each line of the page must be in the output, in this order; lines between them are ignored, such as further headers. Headers have no order. JSON must have the
    same names and types.
    """
    want, got = _json(expected), _json(actual)
    if want is not None:
        if got is None:
            return f"no JSON: {actual[:500]}"
        return _other_form(want, got, "$")
    lines = iter(actual.splitlines())
    headers = [line for line in actual.splitlines() if HEADER.match(line)]
    for line in filter(None, map(str.strip, WRAPPED.sub(",", expected).splitlines())):
        if line == "...":
            continue
        shape = _shape(line)
        # Headers have no order.
        if not any(_same_line(line, shape, other) for other in (headers if HEADER.match(line) else lines)):
            return f"no line as {line!r} (in this order) in:\n{actual}"
    return ""


def values(expected: str, actual: str) -> dict[str, str]:
    """Return the long numbers and ids in the JSON of a page, each with the value in its place in an output."""
    return dict(_values(_json(expected), _json(actual)))


def _values(want: Any, got: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    if isinstance(want, dict) and isinstance(got, dict):
        for name in want:
            yield from _values(want[name], got[name])
    elif isinstance(want, int | str) and len(str(want)) >= LONG_VALUE and not isinstance(want, bool):
        yield str(want), str(got)


def _same_line(line: str, shape: str, other: str) -> bool:
    is_data = line.startswith(DATA) and other.startswith(DATA)
    want, got = (_json(text.removeprefix(DATA) if is_data else text) for text in (line, other))
    if want is not None and got is not None:
        return not _other_form(want, got, "$")
    return shape == _shape(other.strip())


def _shape(line: str) -> str:
    """Return a line without what varies: columns are separated by one space."""
    text = UNIT.sub("#", ROLE.sub("role", VARYING.sub("#", line))).lower()
    return " ".join(PLURAL.sub(r"\1", text).split())


def _json(text: str) -> Any:  # noqa: ANN401 - JSON
    stripped = ELLIPSIS.sub("", text.strip()) if text.strip().startswith(("{", "[")) else ""
    try:
        return json.loads(stripped) if stripped else None
    except ValueError:
        return None


def _other_form(want: Any, got: Any, path: str) -> str:  # noqa: ANN401 - JSON
    if isinstance(want, dict) and isinstance(got, dict):
        if want.keys() != got.keys():
            return f"{path} has {sorted(got)} instead of {sorted(want)}"
        return next(filter(None, (_other_form(want[name], got[name], f"{path}.{name}") for name in want)), "")
    if isinstance(want, list) and isinstance(got, list):
        if bool(want) != bool(got):
            return f"{path} has {len(got)} elements instead of {len(want)}"
        return _other_form(want[0], got[0], f"{path}[0]") if want else ""
    if want is None or got is None or {type(want), type(got)} <= {int, float}:
        return ""
    return "" if type(want) is type(got) else f"{path} is {got!r}, of another type than {want!r}"
