"""Reads the payloads of many records at once, as Arrow columns, with the values that avro_reading.py gives one by one.

A payload that has no value, or is written otherwise than usual, is left to that module; so is a schema with a type that has no column here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from include.kafka.avro.avro_defaults import encoded_default
from include.kafka.avro.avro_types import AvroField, AvroType, as_json, avro_type, is_number, without_null
from include.kafka.avro.schema_resolution import is_readable, matching_fields, missing_field
from include.kafka.logical_types import FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS, LogicalType
from include.replay.avro.avro_cursor import WORD_BYTES, Cursor, Flags, Longs
from include.replay.avro.avro_reading import LONG_DIGITS, reading
from include.replay.columns import arrow_type

# Reads a value of each payload, and moves the positions behind it. Where the payload is given up, the value has no meaning.
Column = Callable[[Cursor], pa.Array]
# An array with more items is left to the reader of single payloads.
MAX_ITEMS = 64
MICROS_PER_MILLI = 1000
NUMBERS: Mapping[str, npt.DTypeLike] = {
    "int": np.int32,
    "long": np.int64,
    "float": np.float32,
    "double": np.float64,
}


class NoColumnError(Exception):
    """A pair of types whose values are read one by one."""


def column_of(writer: AvroType, reader: AvroType) -> Column:
    """Return what reads values of the writer's type as the reader's; raises NoColumnError. The arguments are those of `avro_reading.reading`."""
    if "union" in (writer.kind, reader.kind):
        return _nullable(writer, reader)
    if reader.kind not in COLUMNS or not is_readable(writer, reader):
        raise NoColumnError
    return COLUMNS[reader.kind](writer, reader)


def _nullable(writer: AvroType, reader: AvroType) -> Column:
    """Return what reads a type that may be null, by the writer or the reader: no union of several other types."""
    if any(is_number(one) or without_null(one).kind in {"union", "null"} for one in (writer, reader)):
        raise NoColumnError
    values = column_of(without_null(writer), without_null(reader))
    if writer.kind != "union":
        return values
    accepts_null = writer.is_nullable and reader.is_nullable
    present = next(index for index, branch in enumerate(writer.branches) if branch.kind != "null")

    def column(cursor: Cursor) -> pa.Array:
        branch = cursor.int()
        is_present = branch == present
        cursor.require(is_present | (accepts_null & (branch == 1 - present)))
        if is_present.all():
            return values(cursor)
        rows = np.flatnonzero(is_present)
        part = cursor.part(rows)
        found = values(part)
        cursor.advance(rows, part)
        places = np.zeros(len(cursor), np.int64)
        places[rows] = np.arange(len(rows))
        return found.take(pa.array(places, mask=~is_present))

    return column


def _number(writer: AvroType, reader: AvroType) -> Column:
    target, dtype = arrow_type(reader), NUMBERS[reader.kind]
    logical = LogicalType.of(reader.definition)
    factor = MICROS_PER_MILLI if logical is not None and logical.name.endswith("-millis") else 1

    def column(cursor: Cursor) -> pa.Array:
        value = NUMBER_READERS[writer.kind](cursor)
        if pa.types.is_date(target):
            cursor.require((value >= FIRST_DAY) & (value <= LAST_DAY))
        elif pa.types.is_timestamp(target):
            is_inside = (value >= FIRST_MICROS // factor) & (value <= LAST_MICROS // factor)
            cursor.require(is_inside)
            value = np.where(is_inside, value, 0) * factor
        return _array_of(value.astype(dtype), target)

    return column


NUMBER_READERS: Mapping[str, Callable[[Cursor], npt.NDArray[Any]]] = {
    "int": Cursor.int,
    "long": Cursor.long,
    "float": lambda cursor: cursor.word(4).astype(np.uint32).view(np.float32),
    "double": lambda cursor: cursor.word(8).view(np.float64),
}


def _array_of(values: npt.NDArray[np.generic], target: pa.DataType) -> pa.Array:
    """Return an array without nulls of a type with this layout."""
    return pa.Array.from_buffers(target, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _slice(cursor: Cursor, writer: AvroType) -> tuple[Longs, Longs]:
    """Return where the bytes of each value start, and how many there are: none where the payload is given up."""
    sizes = np.full(len(cursor), writer.size) if writer.kind == "fixed" else cursor.sizes()
    start = cursor.skip(sizes)
    return start, np.where(cursor.ok, sizes, 0)


def _string(writer: AvroType, _reader: AvroType) -> Column:
    def column(cursor: Cursor) -> pa.Array:
        start, sizes = _slice(cursor, writer)
        found = cursor.slices(start, sizes)
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            is_valid = np.fromiter((_is_text(one) for one in found.to_pylist()), np.bool_, len(found))
        cursor.require(is_valid)
        return cursor.slices(start, np.where(is_valid, sizes, 0)).cast(pa.string())

    return column


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _bytes(writer: AvroType, reader: AvroType) -> Column:
    logical = LogicalType.of(reader.definition)
    if logical is None or logical.name != "decimal":
        return lambda cursor: cursor.slices(*_slice(cursor, writer))
    target, most = arrow_type(reader), WORD_BYTES if logical.precision <= LONG_DIGITS else 2 * WORD_BYTES
    limit = 10**logical.precision

    def column(cursor: Cursor) -> pa.Array:
        start, sizes = _slice(cursor, writer)
        cursor.require((sizes > 0) & (sizes <= most))
        end, more = start + sizes, np.maximum(sizes - WORD_BYTES, 0)
        low = _signed(cursor, end, sizes)
        high = np.where(more > 0, _signed(cursor, end - WORD_BYTES, more), low >> 63)
        # `~` of a number is what precedes its negative.
        cursor.require(_is_less(high, low, limit) & _is_less(~high, ~low, limit - 1))
        return _array_of(np.stack((low, high), axis=1), target)

    return column


def _signed(cursor: Cursor, end: Longs, sizes: Longs) -> Longs:
    """Return the number of at most eight bytes that end there, big-endian."""
    shift = np.clip(8 * (WORD_BYTES - sizes), 0, 63)
    word = cursor.words[end - WORD_BYTES].byteswap()
    return (word << shift.astype(np.uint64)).view(np.int64) >> shift


def _is_less(high: Longs, low: Longs, limit: int) -> Flags:
    """Return whether numbers of 128 bits are less than a number."""
    high_limit, low_limit = limit >> 64, np.uint64(limit & 2**64 - 1)
    is_less: Flags = (high < high_limit) | ((high == high_limit) & (low.view(np.uint64) < low_limit))
    return is_less


def _enum(writer: AvroType, reader: AvroType) -> Column:
    other = reader.definition.get("default")
    symbols = [symbol if symbol in reader.symbols else other for symbol in writer.symbols]
    texts, is_known = pa.array(symbols, pa.string()), np.array([symbol is not None for symbol in symbols])

    def column(cursor: Cursor) -> pa.Array:
        index = cursor.int()
        cursor.require((index >= 0) & (index < len(symbols)))
        index = np.where(cursor.ok, index, 0)
        cursor.require(is_known[index])
        return texts.take(pa.array(index))

    return column


def _record(writer: AvroType, reader: AvroType) -> Column:
    if missing_field(writer, reader) is not None:
        raise NoColumnError
    wanted, written = {one.name: one.type for one in reader.fields}, matching_fields(writer, reader)
    steps = [
        (one.name, column_of(one.type, wanted[one.name]) if one.name in written else _passed_over(one.type))
        for one in writer.fields
    ]
    defaults = {one.name: _default(one) for one in reader.fields if one.name not in written}
    fields = list(arrow_type(reader))

    def column(cursor: Cursor) -> pa.Array:
        found = {name: step(cursor) for name, step in steps}
        first = pa.array(np.zeros(len(cursor), np.int64))
        found |= {name: value.take(first) for name, value in defaults.items()}
        if not fields:
            return pa.array([{}] * len(cursor), pa.struct([]))
        return pa.StructArray.from_arrays([found[field.name] for field in fields], fields=fields)

    return column


def _passed_over(one: AvroType) -> Column:
    """Return what reads a value that only the writer has: of its plain type, since no rule concerns it."""
    if _is_recursive(one, frozenset()):
        raise NoColumnError
    plain = avro_type(as_json(one, "", lambda _: {}, set()))
    return column_of(plain, plain)


def _is_recursive(one: AvroType, containing: frozenset[int]) -> bool:
    inside = containing | {id(one)}
    return id(one) in containing or any(_is_recursive(part, inside) for _, part in one.parts)


def _default(field: AvroField) -> pa.Array:
    """Return an array with the default of a field; raises ValueError if it is none of its type."""
    value, _ = reading(field.type, field.type)(encoded_default(field.type, field.default), 0)
    return pa.array([value], arrow_type(field.type))


def _array(writer: AvroType, reader: AvroType) -> Column:
    assert writer.items is not None and reader.items is not None  # noqa: S101, PT018 - of arrays
    item, target = column_of(writer.items, reader.items), arrow_type(reader.items)

    def column(cursor: Cursor) -> pa.Array:
        counts = cursor.long()
        cursor.require((counts >= 0) & (counts <= MAX_ITEMS))
        counts = np.where(cursor.ok, counts, 0)
        offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        found, rows_of = [pa.array([], target)], [np.empty(0, np.int64)]
        # The first item of each array, then the second ones.
        for number in range(counts.max(initial=0)):
            rows = np.flatnonzero(counts > number)
            part = cursor.part(rows)
            found.append(item(part))
            rows_of.append(rows)
            cursor.advance(rows, part)
        # No further items.
        rows = np.flatnonzero(counts)
        part = cursor.part(rows)
        part.require(part.long() == 0)
        cursor.advance(rows, part)
        order = np.argsort(np.concatenate(rows_of), kind="stable")
        return pa.ListArray.from_arrays(pa.array(offsets), pa.concat_arrays(found).take(pa.array(order)))

    return column


COLUMNS: Mapping[str, Callable[[AvroType, AvroType], Column]] = {
    "null": lambda _writer, _reader: lambda cursor: pa.nulls(len(cursor)),
    "boolean": lambda _writer, _reader: lambda cursor: pa.array((cursor.word(1) & np.uint64(0xFF)) == 1),
    "int": _number,
    "long": _number,
    "float": _number,
    "double": _number,
    "string": _string,
    "bytes": _bytes,
    "fixed": _bytes,
    "enum": _enum,
    "record": _record,
    "array": _array,
}
