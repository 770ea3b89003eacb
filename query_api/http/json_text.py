"""JSON with exact decimals: a Decimal becomes a number that keeps its scale, `5.00` and never 5.0."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLAIN_TYPES = frozenset({"string", "int", "long", "boolean", "float", "double"})


def dumps(value: object) -> str:
    """Return the JSON of a value of dictionaries, sequences, strings, numbers, decimals, times and bytes.

    Times become ISO 8601 text, bytes base64. Raises TypeError for anything else, and ValueError for a NaN.
    """
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(k))}:{dumps(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ",".join(dumps(part) for part in value) + "]"
    if isinstance(value, datetime | date):
        return json.dumps(value.isoformat())
    if isinstance(value, bytes):
        return json.dumps(base64.b64encode(value).decode())
    return json.dumps(value, allow_nan=False)


def decimal_text(value: Decimal) -> str:
    """Return a decimal as a JSON number with all of its decimal places."""
    if not value.is_finite():
        message = f"{value} is not a JSON number"
        raise ValueError(message)
    return format(value, "f")


def unscaled_text(scale: int, unscaled: bytes) -> str:
    """Return Avro's decimal (a big-endian two's complement integer of 10^-scale) as a JSON number."""
    number = int.from_bytes(unscaled, "big", signed=True)
    digits = str(number)
    if scale == 0:
        return digits
    if number < 0 or len(digits) <= scale:
        digits = f"{abs(number):0{scale + 1}d}"
        return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
    return f"{digits[:-scale]}.{digits[-scale:]}"


def raw_json(avro_type: object) -> Callable[[Any], str]:
    """Return a function that converts a value of an Avro type, given without its logical type, to JSON.

    The JSON equals that of `dumps` for the value with its logical type. Supported: decimals over bytes, times in milliseconds,
    strings, numbers, booleans, arrays of these, and unions of one of them with null. Raises TypeError for any other type.
    """
    if isinstance(avro_type, list):
        others = [one for one in avro_type if one != "null"]
        if len(others) == 1:
            return raw_json(others[0])
    if isinstance(avro_type, dict):
        match avro_type.get("type"), avro_type.get("logicalType"):
            case "bytes", "decimal":
                scale: int = avro_type.get("scale", 0)
                return partial(unscaled_text, scale)
            case "long", "timestamp-millis":
                return lambda ms: dumps(EPOCH + timedelta(milliseconds=ms))
            case "array", None:
                item = raw_json(avro_type["items"])
                return lambda items: "[" + ",".join(map(item, items)) + "]"
            case inner, None:
                return raw_json(inner)
    if isinstance(avro_type, str) and avro_type in PLAIN_TYPES:
        return dumps
    raise TypeError(f"A named lookup cannot answer a field of the Avro type {avro_type}.")
