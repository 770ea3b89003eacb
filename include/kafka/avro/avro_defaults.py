"""Defaults of Avro fields, which schemas have as JSON, in Avro's binary encoding.

The rules are those of Avro's Java library 1.12 (`Schema.isValidDefault`, `ResolvingGrammarGenerator.encode`).
"""

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

from include.kafka.avro.avro_types import AvroField, AvroType

INT, LONG = 1 << 31, 1 << 63
TEXTS = frozenset({"string", "bytes", "fixed"})
NUMBERS = frozenset({"int", "long", "float", "double"})


def encoded_default(of: AvroType, default: Any) -> bytes:  # noqa: ANN401 - JSON of any shape
    """Return the encoding of a field's default; raises ValueError when the default is not one of its type."""
    if of.kind == "union":
        return _branch(of, default)
    if not _fits(of, default):
        raise ValueError(f"{default!r} is no value of type {of.name or of.kind}")
    if of.kind == "record":
        return b"".join(encoded_default(one.type, _value(one, default)) for one in of.fields)
    if of.items is None:
        return SIMPLE[of.kind](of, default)
    items = of.items
    if of.kind == "array":
        return _items([encoded_default(items, one) for one in default])
    return _items([_text(key) + encoded_default(items, one) for key, one in default.items()])


def _fits(of: AvroType, default: Any) -> bool:  # noqa: ANN401 - JSON of any shape
    match of.kind:
        case "enum":
            return default in of.symbols
        case "int" | "long":
            limit = INT if of.kind == "int" else LONG
            return type(default) is int and -limit <= default < limit
        case "record" | "map":
            return isinstance(default, dict)
        case "array":
            return isinstance(default, list)
    return _may_be(of.kind, default)


def _value(field: AvroField, default: dict[str, Any]) -> Any:  # noqa: ANN401 - as above
    """Return the value of a field in the default of its record: its own default if there is none."""
    if field.name not in default and not field.has_default:
        raise ValueError(f"it lacks the field {field.name}")
    return default.get(field.name, field.default)


def _branch(union: AvroType, default: Any) -> bytes:  # noqa: ANN401 - JSON of any shape
    """Encode the default as the first branch that Java takes for its type, which looks only at simple types."""
    for index, branch in enumerate(union.branches):
        if _may_be(branch.kind, default):
            return _long(index) + encoded_default(branch, default)
    raise ValueError(f"{default!r} is no value of any type of the union")


def _may_be(kind: str, default: Any) -> bool:  # noqa: ANN401 - JSON of any shape
    if kind in TEXTS:
        return isinstance(default, str)
    if kind in NUMBERS:
        return isinstance(default, int | float) and not isinstance(default, bool)
    if kind == "boolean":
        return isinstance(default, bool)
    return default is None if kind == "null" else True


def _float(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def _items(items: list[bytes]) -> bytes:
    return (_long(len(items)) if items else b"") + b"".join(items) + b"\0"


def _with_size(value: bytes) -> bytes:
    return _long(len(value)) + value


def _text(value: str) -> bytes:
    # As Java does with half of a pair of characters.
    return _with_size(value.encode("utf-8", "replace"))


def _latin(value: str) -> bytes:
    return value.encode("latin-1", "replace")


def _long(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 0x7F:  # noqa: PLR2004 - seven bits a byte
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])


# Type without parts -> the encoding of a default that fits it.
SIMPLE: Mapping[str, Callable[[AvroType, Any], bytes]] = {
    "null": lambda _of, _value: b"",
    "boolean": lambda _of, value: bytes([value]),
    "int": lambda _of, value: _long(value),
    "long": lambda _of, value: _long(value),
    "float": lambda _of, value: _float(float(value)),
    "double": lambda _of, value: struct.pack("<d", float(value)),
    "string": lambda _of, value: _text(value),
    "bytes": lambda _of, value: _with_size(_latin(value)),
    "fixed": lambda of, value: _latin(value)[: of.size].ljust(of.size, b"\0"),
    "enum": lambda of, value: _long(of.symbols.index(value)),
}
