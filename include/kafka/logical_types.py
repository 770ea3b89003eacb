"""Compares the logical types of two record schemas: Avro itself resolves a writer's schema to a reader's without them.

Source: Apache Avro specification 1.12, "Schema Resolution" and "Logical Types".
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any

from include.errors import SchemaError
from include.kafka.avro.avro_types import AvroType, as_json, avro_type, without_null
from include.kafka.avro.schema_resolution import (
    is_readable,
    is_same_union,
    matching_branch,
    matching_fields,
    with_reader_names,
)
from include.kafka.record_schema import RecordSchema

TIMES = frozenset(
    f"{prefix}timestamp-{unit}" for prefix in ("", "local-") for unit in ("millis", "micros", "nanos")
)
# Logical type -> the types that it may be of.
BASE_TYPES: Mapping[str, tuple[str, ...]] = dict.fromkeys(TIMES, ("long",)) | {
    "decimal": ("bytes", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "duration": ("fixed",),
}
DURATION_BYTES = 12
RAW = {"bytes", "fixed"}
# Of Spark's decimals.
MAX_DIGITS = 38
# Milliseconds and microseconds convert to each other; what is below a millisecond is cut off.
EXACT_TIMES = frozenset({"timestamp-millis", "timestamp-micros"})
EXACT_LOCAL_TIMES = frozenset({"local-timestamp-millis", "local-timestamp-micros"})
# What Spark 4.1, of the lake, and 4.3, of the stream, both read as values of a type of their own. All others are read as what they are
# of, such as a long: 4.3 has types for the time of a day and for nanoseconds, 4.1 has not.
DECODED = EXACT_TIMES | EXACT_LOCAL_TIMES | {"decimal", "date"}
# Python, Avro and Delta libraries represent the years 1 to 9999. Two days at each end are left out: in another time zone, or when
# Python computes a time zone's offset, they may be in the year 0 or 10000.
EPOCH = date(1970, 1, 1)
FIRST_DAY = (date(1, 1, 3) - EPOCH).days
LAST_DAY = (date(9999, 12, 29) - EPOCH).days
MICROS_PER_DAY = 24 * 3600 * 1_000_000
FIRST_MICROS = FIRST_DAY * MICROS_PER_DAY
LAST_MICROS = (LAST_DAY + 1) * MICROS_PER_DAY - 1


@dataclass(frozen=True)
class LogicalType:
    """The logical type of a number or of bytes, such as decimal(18,2); precision and scale are 0 for other types."""

    name: str
    precision: int = 0
    scale: int = 0

    @classmethod
    def of(cls, avro_type: Any) -> "LogicalType | None":  # noqa: ANN401 - an Avro schema is JSON of any shape
        """Return the logical type of an Avro type; None if it has none that changes the meaning of its bytes.

        One that does not fit the type that it is of, such as a date of a long, is none, as in Avro's libraries.
        """
        name = avro_type.get("logicalType") if isinstance(avro_type, dict) else None
        if not isinstance(name, str) or avro_type["type"] not in BASE_TYPES.get(name, ()):
            return None
        if name == "duration":
            return cls(name) if avro_type["size"] == DURATION_BYTES else None
        if name != "decimal":
            return cls(name)
        precision, scale = avro_type.get("precision"), avro_type.get("scale", 0)
        if (
            type(precision) is not int
            or type(scale) is not int
            or not 0 <= scale <= precision
            or precision == 0
        ):
            return None
        bits = 8 * avro_type["size"] - 1 if avro_type["type"] == "fixed" else None
        if bits is not None and precision > math.floor(math.log10(2) * bits):
            return None
        return cls(name, precision, scale)

    def converts_exactly_to(self, other: "LogicalType") -> bool:
        """Whether values of this type convert to the other type without a change, apart from a time's part of a millisecond.

        A decimal with too many digits before the point has no value in the other type: its record cannot be decoded.
        """
        if self.name == other.name == "decimal":
            return self.scale <= other.scale
        names = {self.name, other.name}
        return len(names) == 1 or names <= EXACT_TIMES or names <= EXACT_LOCAL_TIMES

    def __str__(self) -> str:
        """Return the type as in a message."""
        return f"{self.name}({self.precision},{self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True)
class Comparison:
    """How a writer's schema differs from a reader's in logical types.

    converted: the reader's fields that are converted -> the writer's type, which they are decoded with.
    problem: why the writer's records cannot be read exactly; None if they can.
    """

    converted: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None


@lru_cache(maxsize=1024)
def compare(writer: RecordSchema, reader: RecordSchema) -> Comparison:
    """Compare the logical types of the fields that both schemas have. Never raises: a schema that cannot be compared is a problem.

    Only a field's own type is converted (a union of it and null included); a difference inside of a nested type is a problem.
    """
    if writer.problem is not None:
        return Comparison(problem=writer.problem)
    try:
        return _compare(writer, reader)
    except SchemaError as error:
        return Comparison(problem=f"{error}")
    except Exception as error:  # noqa: BLE001 - a foreign schema can raise anything; it concerns the records with its id only
        return Comparison(problem=f"the schema cannot be compared ({error!r})")


def _compare(writer: RecordSchema, reader: RecordSchema) -> Comparison:
    original, wanted = avro_type(writer.parsed()), avro_type(reader.renamed_like(writer).parsed())
    written = with_reader_names(original, wanted)
    converted = {}
    ours = {declared.name: declared.type for declared in wanted.fields}
    for before, declared in zip(original.fields, written.fields, strict=True):
        name = declared.name
        if name not in ours:
            continue
        for path, found, expected in _leaves(declared.type, ours[name], name, set()):
            if found == expected:
                continue
            own = without_null(before.type)
            if (
                path != name
                or own.kind == "union"
                or found is None
                or expected is None
                or not found.converts_exactly_to(expected)
            ):
                return Comparison(
                    problem=f"{path} is {found or 'a plain value'}, not {expected or 'a plain value'}"
                )
            if found.precision > MAX_DIGITS:
                return Comparison(problem=f"{path} is {found}: a decimal has at most {MAX_DIGITS} digits")
            converted[name] = as_json(own, original.name.rpartition(".")[0], _properties, set())
    return Comparison(converted)


def decoded_as(reader: RecordSchema, comparison: Comparison) -> RecordSchema:
    """Return the schema with which a writer's records are decoded: the reader's, with the writer's type of each field that is converted.

    It has only the logical types in DECODED, and none of the properties that change how Spark reads a type.
    """
    parsed = reader.parsed()
    namespace = reader.full_name.rpartition(".")[0]
    defined: set[str] = set()
    for declared, of_reader in zip(parsed["fields"], avro_type(parsed).fields, strict=True):
        found = comparison.converted.get(declared["name"])
        kept = of_reader.type
        if found is not None:
            own = avro_type(found, namespace)
            branches = tuple(branch if branch.kind == "null" else own for branch in kept.branches)
            kept = AvroType("union", None, branches=branches) if branches else own
        declared["type"] = as_json(kept, namespace, _properties, defined)
    return RecordSchema.parse(json.dumps(parsed), reader.full_name)


def field_types(schema: RecordSchema) -> dict[str, AvroType]:
    """Return field -> its type as it is decoded; for a union of null and one other type, that type."""
    decoded = avro_type(decoded_as(schema, Comparison()).parsed())
    return {declared.name: without_null(declared.type) for declared in decoded.fields}


def _properties(one: AvroType) -> dict[str, Any]:
    logical = LogicalType.of(one.definition)
    if logical is None or logical.name not in DECODED:
        return {}
    return {
        name: one.definition[name] for name in ("logicalType", "precision", "scale") if name in one.definition
    }


def _leaves(
    writer: AvroType, reader: AvroType, path: str, seen: set[tuple[int, int]]
) -> Iterator[tuple[str, LogicalType | None, LogicalType | None]]:
    """Yield the path of each value without parts that both types have, such as `lines[].price`, with both of its logical types."""
    if "union" in (writer.kind, reader.kind):
        for theirs, ours, suffix in _branch_pairs(writer, reader):
            yield from _leaves(theirs, ours, path + suffix, seen)
    elif writer.kind == reader.kind == "record":
        if (id(writer), id(reader)) in seen:
            return
        seen.add((id(writer), id(reader)))
        types = {declared.name: declared.type for declared in reader.fields}
        for name, declared in matching_fields(writer, reader).items():
            yield from _leaves(declared.type, types[name], f"{path}.{name}", seen)
    elif writer.kind == reader.kind and writer.items is not None and reader.items is not None:
        yield from _leaves(writer.items, reader.items, f"{path}[]", seen)
    elif is_readable(writer, reader) or {writer.kind, reader.kind} <= RAW:
        # Decimals in types that Avro does not convert to each other, such as two sizes of fixed, are still numbers.
        yield path, LogicalType.of(writer.definition), LogicalType.of(reader.definition)


def _branch_pairs(writer: AvroType, reader: AvroType) -> Iterator[tuple[AvroType, AvroType, str]]:
    """Yield which types of the writer are read as which ones of the reader, where one of both is a union."""
    if is_same_union(writer, reader):
        for index, branch in enumerate(writer.branches):
            yield branch, reader.branches[index], reader.suffix(index)
    elif writer.kind == "union":
        yield from ((branch, reader, "") for branch in writer.branches)
    elif (found := matching_branch(writer, reader)) is not None:
        yield writer, reader.branches[found], reader.suffix(found)
    elif (only := without_null(reader)).kind in RAW:
        yield writer, only, ""
