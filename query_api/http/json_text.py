"""The JSON form of every value that Avro has. Decimals are numbers that keep their scale, `5.00` and never 5.0.

A float or double that is no number is one of three strings, as in the JSON mapping of Protocol Buffers (ProtoJSON): "NaN",
"Infinity", "-Infinity". Spark reads them back as what they were.
docs/api.md, "Values", lists the form of each type.
"""

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from include.kafka.state_record import StateRecord
from include.nodes.field_names import FieldNames

DecimalJson = Callable[[int, bytes], str]
"""Returns the JSON of Avro's decimal from its scale and its unscaled value."""


class RecordForm(NamedTuple):
    """How a client wants records. text_decimals: whether exact decimals are strings. names: of the record's own fields."""

    text_decimals: bool = False
    names: FieldNames = FieldNames.CAMEL


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The branches of a union by what a value without its logical type is in Python.
PYTHON_TYPES: dict[Any, tuple[type, ...]] = {
    **dict.fromkeys(("int", "long"), (int,)),
    **dict.fromkeys(("float", "double"), (float,)),
    **dict.fromkeys(("bytes", "fixed"), (bytes,)),
    **dict.fromkeys(("string", "enum"), (str,)),
    **dict.fromkeys(("map", "record"), (dict,)),
    "boolean": (bool,),
    "array": (list,),
}


def dumps(value: object) -> str:
    """Return the JSON of a value of dictionaries, sequences, strings, numbers, decimals, times, UUIDs and bytes.

    Times become ISO 8601 text, bytes base64. Raises TypeError for anything else, and ValueError for a decimal that is no number.
    """
    if isinstance(value, float):
        return float_text(value)
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, Mapping):
        return _object((str(name), dumps(one)) for name, one in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ",".join(dumps(part) for part in value) + "]"
    return json.dumps(_text(value))


def _text(value: object) -> object:
    """Return the text of a value that JSON has no type for; any other value as it is."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case UUID():
            return str(value)
    return value


def float_text(value: float) -> str:
    """Return a float or double as a JSON number; one of three strings if it is no number."""
    if math.isfinite(value):
        return repr(value)
    return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


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


def quoted_text(scale: int, unscaled: bytes) -> str:
    """Return Avro's decimal as a JSON string."""
    return f'"{unscaled_text(scale, unscaled)}"'


def with_text_decimals(value: object) -> object:
    """Return a value with each decimal in it as text, which programs without decimals read without loss."""
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, Mapping):
        return {name: with_text_decimals(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [with_text_decimals(one) for one in value]
    return value


def raw_json(avro_type: Any, *, text_decimals: bool = False) -> Callable[[Any], str]:  # noqa: ANN401 - JSON of any shape
    """Return a function that converts a value of an Avro type, given without its logical type, to JSON.

    The JSON equals that of `dumps` for the value with its logical type; with `text_decimals`, for that of `with_text_decimals`.
    """
    return _json_of(avro_type, quoted_text if text_decimals else unscaled_text)


def _json_of(avro_type: Any, decimal: DecimalJson) -> Callable[[Any], str]:  # noqa: ANN401 - JSON of any shape
    if isinstance(avro_type, list):
        return _union_json([one for one in avro_type if one != "null"], decimal)
    if not isinstance(avro_type, dict):
        return dumps
    kind, logical_type = avro_type.get("type"), avro_type.get("logicalType")
    if logical_type is not None:
        return _logical_json(str(logical_type), avro_type.get("scale", 0), decimal)
    if isinstance(kind, dict | list):
        return _json_of(kind, decimal)
    return _container_json(avro_type, decimal)


def _logical_json(logical_type: str, scale: int, decimal: DecimalJson) -> Callable[[Any], str]:
    match logical_type:
        case "decimal":
            return partial(decimal, scale)
        case "date":
            return lambda days: dumps(EPOCH.date() + timedelta(days))
        case "timestamp-millis" | "timestamp-micros" | "local-timestamp-millis" | "local-timestamp-micros":
            start = EPOCH.replace(tzinfo=None) if logical_type.startswith("local") else EPOCH
            unit = timedelta(milliseconds=1) if logical_type.endswith("millis") else timedelta(microseconds=1)
            return lambda number: dumps(start + number * unit)
    return dumps


def _container_json(avro_type: Any, decimal: DecimalJson) -> Callable[[Any], str]:  # noqa: ANN401 - JSON of any shape
    match avro_type["type"]:
        case "array":
            item = _or_null(_json_of(avro_type["items"], decimal))
            return lambda items: "[" + ",".join(map(item, items)) + "]"
        case "map":
            value = _or_null(_json_of(avro_type["values"], decimal))
            return lambda entries: _object((name, value(one)) for name, one in entries.items())
        case "record":
            fields = {
                field["name"]: _or_null(_json_of(field["type"], decimal)) for field in avro_type["fields"]
            }
            return lambda record: _object((name, text(record[name])) for name, text in fields.items())
    return dumps


def _union_json(branches: list[Any], decimal: DecimalJson) -> Callable[[Any], str]:
    """Return the function for a union, which chooses the branch by the value's Python type."""
    if len(branches) == 1:
        return _json_of(branches[0], decimal)
    texts: dict[type, Callable[[Any], str]] = {}
    for branch in branches:
        name = branch.get("type") if isinstance(branch, dict) else branch
        for python_type in PYTHON_TYPES.get(name, ()):
            texts.setdefault(python_type, _json_of(branch, decimal))
    return lambda value: texts.get(type(value), dumps)(value)


def _or_null(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "null" if value is None else text(value)


def _object(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members) + "}"


def record_fields(key: bytes, record: StateRecord, *, text_decimals: bool = False) -> dict[str, object]:
    """Return a key's state record as a dictionary for JSON."""
    return {
        "key": key.decode(),
        "state": with_text_decimals(record.state) if text_decimals else record.state,
        **record.position.record_fields(),
        "occurred_on": record.occurred_on,
    }
