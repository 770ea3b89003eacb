"""Reads Avro payloads in Python as Spark's `from_avro` does, for decoders that check it: compiles one function per pair of schemas.

Source: Apache Avro specification 1.12, "Binary encoding" and "Schema resolution"; where its Java library differs, or accepts damaged
bytes, this does the same (`BinaryDecoder`, `FastReaderBuilder` of 1.12.1). Values have the types of Spark's `SchemaConverters` 4.1, in the
form that Arrow accepts: times are whole microseconds, dates are days, a union of several types is a struct of `member0`, `member1`, ...
"""

import struct
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from typing import Any

import numpy as np

from include.kafka.avro.avro_defaults import encoded_default
from include.kafka.avro.avro_types import AvroType, is_number
from include.kafka.avro.schema_resolution import (
    is_readable,
    is_same_union,
    matching_branch,
    matching_fields,
    missing_field,
)
from include.kafka.logical_types import FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS, LogicalType
from include.replay.avro.avro_bytes import (
    InvalidPayloadError,
    end_of,
    read_block,
    read_int,
    read_long,
    skipping,
)

# From the payload and a position in it to the value there and the position after it. Any exception: the payload is not valid.
Read = Callable[[bytes, int], tuple[Any, int]]

# Of the decimals that Spark keeps as longs.
LONG_DIGITS, LONG_BYTES = 18, 8
# More digits than any decimal has, so that no operation rounds.
EXACT = Context(prec=100)
FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")


def reading(writer: AvroType, reader: AvroType) -> Read:
    """Return the function that reads a value of the writer's type, with `with_reader_names`, as the reader's type, which is not recursive.

    Raises ValueError if a default of the reader's is not valid.
    """
    if writer.kind == "union":
        return _union(writer, reader)
    if reader.kind == "union":
        index = matching_branch(writer, reader)
        return (
            _rejected if index is None else _as_branch(reader, index, reading(writer, reader.branches[index]))
        )
    if not is_readable(writer, reader):
        return _rejected
    return READINGS[reader.kind](writer, reader)


def _rejected(_data: bytes, _pos: int) -> tuple[Any, int]:
    raise InvalidPayloadError


def _null(_data: bytes, pos: int) -> tuple[None, int]:
    return None, pos


def _boolean(data: bytes, pos: int) -> tuple[bool, int]:
    return data[pos] == 1, pos + 1


def _raw(data: bytes, pos: int) -> tuple[bytes, int]:
    size, pos = read_long(data, pos)
    end = end_of(data, pos, size)
    return data[pos:end], end


def _string(data: bytes, pos: int) -> tuple[str, int]:
    size, pos = read_long(data, pos)
    end = end_of(data, pos, size)
    # Text that is not UTF-8 raises.
    return data[pos:end].decode(), end


def _number(writer: AvroType, reader: AvroType) -> Read:
    read: Read
    if writer.kind in {"float", "double"}:
        unpack = FLOAT if writer.kind == "float" else DOUBLE

        def read(data: bytes, pos: int) -> tuple[Any, int]:
            return unpack.unpack_from(data, pos)[0], pos + unpack.size

        return read
    read = read_int if writer.kind == "int" else read_long
    if reader.kind == "float":
        # By way of a double, which Python's conversion takes, a long would be rounded twice.
        return _mapped(read, lambda value: float(np.int64(value).astype(np.float32)))
    if reader.kind == "double":
        return _mapped(read, float)
    logical = LogicalType.of(reader.definition)
    if logical is None:
        return read
    if logical.name == "date":
        return _mapped(read, lambda value: _within(value, FIRST_DAY, LAST_DAY))
    factor = 1000 if logical.name.endswith("millis") else 1
    return _mapped(read, lambda value: _within(value * factor, FIRST_MICROS, LAST_MICROS))


def _within(value: int, first: int, last: int) -> int:
    if not first <= value <= last:
        raise InvalidPayloadError
    return value


def _mapped(read: Read, change: Callable[[Any], Any]) -> Read:
    def changed(data: bytes, pos: int) -> tuple[Any, int]:
        value, pos = read(data, pos)
        return change(value), pos

    return changed


def _bytes(writer: AvroType, reader: AvroType) -> Read:
    read = _raw if writer.kind != "fixed" else _fixed(writer.size)
    logical = LogicalType.of(reader.definition)
    return read if logical is None else _mapped(read, _decimal(logical))


def _fixed(size: int) -> Read:
    def read(data: bytes, pos: int) -> tuple[bytes, int]:
        end = end_of(data, pos, size)
        return data[pos:end], end

    return read


def _decimal(logical: LogicalType) -> Callable[[bytes], Decimal]:
    limit, exponent = 10**logical.precision, -logical.scale
    # Spark takes the lowest bits of a longer number of bytes.
    cuts = logical.precision <= LONG_DIGITS
    to_number, scaleb = int.from_bytes, EXACT.scaleb

    def decimal(value: bytes) -> Decimal:
        unscaled = to_number(value[-LONG_BYTES:] if cuts else value, "big", signed=True)
        # Java has no number of no bytes.
        if not value or not -limit < unscaled < limit:
            raise InvalidPayloadError
        return scaleb(Decimal(unscaled), exponent)

    return decimal


def _enum(writer: AvroType, reader: AvroType) -> Read:
    other = reader.definition.get("default")
    symbols = [symbol if symbol in reader.symbols else other for symbol in writer.symbols]

    def read(data: bytes, pos: int) -> tuple[str, int]:
        index, pos = read_int(data, pos)
        if index < 0 or (symbol := symbols[index]) is None:
            raise InvalidPayloadError
        return symbol, pos

    return read


def _record(writer: AvroType, reader: AvroType) -> Read:
    if missing_field(writer, reader) is not None:
        return _rejected
    wanted = {one.name: one.type for one in reader.fields}
    written = matching_fields(writer, reader)
    steps: list[tuple[str | None, Any]] = [
        (one.name, reading(one.type, wanted[one.name])) if one.name in written else (None, skipping(one.type))
        for one in writer.fields
    ]
    try:
        defaults = {
            one.name: reading(one.type, one.type)(encoded_default(one.type, one.default), 0)[0]
            for one in reader.fields
            if one.name not in written
        }
    except InvalidPayloadError:
        # Such as a decimal with too many digits: no record of this writer has a value for the field.
        return _rejected

    def read(data: bytes, pos: int) -> tuple[dict[str, Any], int]:
        found = defaults.copy()
        for name, step in steps:
            if name is None:
                pos = step(data, pos)
            else:
                found[name], pos = step(data, pos)
        return found, pos

    return read


def _array(item: Read) -> Read:
    def read(data: bytes, pos: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        count, pos = read_block(data, pos, 0)
        while count:
            for _ in range(count):
                value, pos = item(data, pos)
                found.append(value)
            count, pos = read_block(data, pos, len(found))
        return found, pos

    return read


def _map(item: Read) -> Read:
    def read(data: bytes, pos: int) -> tuple[list[tuple[str, Any]], int]:
        found: dict[str, Any] = {}
        read_items = 0
        count, pos = read_block(data, pos, 0)
        while count:
            for _ in range(count):
                key, pos = _string(data, pos)
                found[key], pos = item(data, pos)
            read_items += count
            count, pos = read_block(data, pos, read_items)
        return _in_java_order(found), pos

    return read


def _in_java_order(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return a map's entries in the order of Java's HashMap: a fold may see it, such as in a sum of doubles.

    They are ordered by their place in a table, which doubles when three quarters are used, and then by when they were added. The order of nine
    keys or more with one place is another.
    """
    places = 16
    while len(found) > places * 3 // 4:
        places *= 2
    return sorted(found.items(), key=lambda entry: _hash(entry[0]) & (places - 1))


def _hash(key: str) -> int:
    code = 1
    for byte in key.encode():
        # Bytes have signs in Java.
        code = (code * 31 + byte - (byte >> 7 << 8)) & 0xFFFFFFFF
    return code ^ (code >> 16)


def _union(writer: AvroType, reader: AvroType) -> Read:
    if is_same_union(writer, reader):
        branches = [
            _as_branch(reader, index, reading(one, reader.branches[index]))
            for index, one in enumerate(writer.branches)
        ]
    else:
        branches = [reading(one, reader) for one in writer.branches]

    def read(data: bytes, pos: int) -> tuple[Any, int]:
        index, pos = read_int(data, pos)
        if index < 0:
            raise InvalidPayloadError
        return branches[index](data, pos)

    return read


def _as_branch(union: AvroType, index: int, read: Read) -> Read:
    """Return a function that reads a value of one branch of a reader's union as Spark's type of the union."""
    others = [branch for branch in union.branches if branch.kind != "null"]
    branch = union.branches[index]
    if branch.kind == "null" or len(others) == 1 or is_number(union):
        return read
    member = f"member{others.index(branch)}"
    return _mapped(read, lambda value: {member: value})


def _items(one: AvroType) -> AvroType:
    assert one.items is not None  # noqa: S101 - of an array or a map
    return one.items


READINGS: Mapping[str, Callable[[AvroType, AvroType], Read]] = {
    "null": lambda _writer, _reader: _null,
    "boolean": lambda _writer, _reader: _boolean,
    "string": lambda _writer, _reader: _string,
    "int": _number,
    "long": _number,
    "float": _number,
    "double": _number,
    "bytes": _bytes,
    "fixed": _bytes,
    "enum": _enum,
    "record": _record,
    "array": lambda writer, reader: _array(reading(_items(writer), _items(reader))),
    "map": lambda writer, reader: _map(reading(_items(writer), _items(reader))),
}
