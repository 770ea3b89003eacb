"""JSON with exact decimals: a Decimal becomes a number with its scale kept, `5.00` and never 5.0."""

import base64
import json
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal


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
    """Return a decimal as a JSON number, all its decimals written out."""
    if not value.is_finite():
        message = f"{value} is not a JSON number"
        raise ValueError(message)
    return format(value, "f")


def unscaled_text(unscaled: bytes, scale: int) -> str:
    """Return Avro's decimal (a big-endian two's complement integer of 10^-scale) as a JSON number."""
    number = int.from_bytes(unscaled, "big", signed=True)
    if scale == 0:
        return str(number)
    digits = f"{abs(number):0{scale + 1}d}"
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
