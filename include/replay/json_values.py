"""Values of Arrow as JSON: written as Spark's `to_json` writes them (null fields, too), and read from the nodes' answers."""

import base64
import json
import re
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

# Java's Jackson escapes these, the others of them with hexadecimal digits in upper case, and no character beyond.
ESCAPED = re.compile(r'["\\\x00-\x1f]')
SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
# Java writes a fraction without an exponent from 10^-3 up to, and not including 10^7.
LEAST_EXPONENT, MOST_EXPONENT = -3, 6


def json_object(fields: Iterable[tuple[str, Any, pa.DataType]]) -> str:
    """Return fields, each with its name, its value as `to_pylist` gives it, and its type, as a JSON object without spaces."""
    return "{" + ",".join(f"{_text(name)}:{json_text(value, kind)}" for name, value, kind in fields) + "}"


def json_text(value: Any, kind: pa.DataType) -> str:  # noqa: ANN401, PLR0911 - a value of any type; one return for each kind
    """Return a value as JSON: decimals as numbers with their scale, moments with milliseconds in UTC, bytes in Base64."""
    if value is None:
        return "null"
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    if pa.types.is_floating(kind):
        return _fraction(np.float32(value) if pa.types.is_float32(kind) else np.float64(value))
    if pa.types.is_timestamp(kind):
        return f'"{time_text(value, is_moment=kind.tz is not None)}"'
    if pa.types.is_date(kind):
        return f'"{value.isoformat()}"'
    if pa.types.is_binary(kind):
        return f'"{base64.b64encode(value).decode()}"'
    if pa.types.is_list(kind):
        return "[" + ",".join(json_text(one, kind.value_type) for one in value) + "]"
    if pa.types.is_map(kind):
        return json_object((name, one, kind.item_type) for name, one in value)
    if pa.types.is_struct(kind):
        return json_object((field.name, value[field.name], field.type) for field in kind)
    return _text(value) if isinstance(value, str) else str(value)


def time_text(time: datetime, *, is_moment: bool = True) -> str:
    """Return a time in UTC, cut off to milliseconds, as ISO 8601. is_moment: false for a local time, which has no zone."""
    return f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds')}{'Z' if is_moment else ''}"


def typed_value(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401, PLR0911 - JSON of any shape
    """Return a value of JSON, as a node answers with it, in the form that Arrow accepts for a type."""
    if value is None:
        return None
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(value)
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    if pa.types.is_binary(kind):
        return base64.b64decode(value)
    if pa.types.is_list(kind):
        return [typed_value(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [(name, typed_value(one, kind.item_type)) for name, one in value.items()]
    if pa.types.is_struct(kind):
        return {field.name: typed_value(value.get(field.name), field.type) for field in kind}
    return value


def _text(value: str) -> str:
    return '"' + ESCAPED.sub(lambda found: _escape(found[0]), value) + '"'


def _escape(character: str) -> str:
    return SHORT_ESCAPES.get(character, f"\\u{ord(character):04X}")


def _fraction(value: "np.float32 | np.float64") -> str:
    """Return a number as Java's `Float.toString` and `Double.toString` do: the fewest digits that identify it, and at least two."""
    if not np.isfinite(value):
        return json.dumps("NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    text = np.format_float_scientific(value, unique=True, trim="0")
    mantissa, _, exponent = text.partition("e")
    if mantissa.endswith(".0"):
        # One digit is enough: Java writes the closest number with two.
        closest = f"{value:.1e}"
        if type(value)(closest) == value:
            mantissa, _, exponent = closest.partition("e")
    power = int(exponent)
    if value != 0 and not LEAST_EXPONENT <= power <= MOST_EXPONENT:
        return f"{mantissa}E{power}"
    return np.format_float_positional(value, unique=True, trim="0")
