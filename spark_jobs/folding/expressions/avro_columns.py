"""Columns as the fields of an Avro record: each is cast to its field's type, or refused by name where Avro cannot have it."""

from collections.abc import Mapping
from typing import Any

import fastavro.schema
from pyspark.sql import Column, DataFrame
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.functions import struct
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

WHOLE = (ByteType, ShortType, IntegerType, LongType)
PLAIN: dict[str, DataType] = {
    "null": NullType(),
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "enum": StringType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
}
# The logical types for which Spark has a type. The others are written as the numbers, bytes or strings that they are.
LOGICAL: dict[tuple[str, str], DataType] = {
    ("int", "date"): DateType(),
    **{("long", f"timestamp-{unit}"): TimestampType() for unit in ("millis", "micros")},
    **{("long", f"local-timestamp-{unit}"): TimestampNTZType() for unit in ("millis", "micros")},
}


def avro_record(owner: str, schema: RecordSchema, columns: Mapping[str, Column], frame: DataFrame) -> Column:
    """Return a record in Avro, without framing, of the column of each field of its schema; arguments as those of `typed_columns`."""
    typed = typed_columns(owner, schema, columns, frame)
    return to_avro(struct(*(typed[field["name"]] for field in schema.parsed()["fields"])), schema.text)


def typed_columns(
    owner: str, schema: RecordSchema, columns: Mapping[str, Column], frame: DataFrame
) -> dict[str, Column]:
    """Return these columns by the field of the schema that they are, with the types of the fields.

    owner: names the declaration in messages. frame: has what the columns are made of.
    Raises ReadModelError for a column that is nothing that its field can have.
    """
    wanted = field_types(schema)
    found = frame.select(*(column.alias(name) for name, column in columns.items())).schema
    typed = {}
    for name, column in columns.items():
        kind = written_type(f"{owner}: field {name}", found[name].dataType, wanted[name])
        typed[name] = (column if kind == found[name].dataType else column.cast(kind)).alias(name)
    return typed


def field_types(schema: RecordSchema) -> dict[str, Any]:
    """Return field -> Avro type, with named types written out where they are used."""
    expanded: Any = fastavro.schema.expand_schema(schema.parsed())
    return {field["name"]: field["type"] for field in expanded["fields"]}


def branches(avro_type: Any) -> tuple[list[Any], bool]:  # noqa: ANN401 - JSON of any shape
    """Return the types that a value may have apart from null, and whether it may be null."""
    kinds = avro_type if isinstance(avro_type, list) else [avro_type]
    others = [kind for kind in kinds if kind not in ("null", {"type": "null"})]
    return others, len(others) < len(kinds)


def written_type(path: str, found: DataType, avro_type: Any) -> DataType:  # noqa: ANN401, PLR0911 - JSON of any shape; one return for each kind
    """Return the type that a column of type `found` is cast to, so that Spark writes it as this Avro type.

    path: names the value in the message. Raises ReadModelError if there is none.
    """
    kinds, _ = branches(avro_type)
    if not kinds:
        return NullType()
    if len(kinds) > 1:
        return _union(path, found, kinds)
    kind = kinds[0]
    name = kind["type"] if isinstance(kind, dict) else kind
    if isinstance(name, dict | list):
        return written_type(path, found, name)
    if isinstance(found, NullType):
        return _spark_type(kind)
    if name == "array" and isinstance(found, ArrayType):
        return ArrayType(written_type(f"{path}[]", found.elementType, kind["items"]), found.containsNull)
    if name == "map" and isinstance(found, MapType) and isinstance(found.keyType, StringType):
        value = written_type(f"{path}[]", found.valueType, kind["values"])
        return MapType(found.keyType, value, found.valueContainsNull)
    if name == "record" and isinstance(found, StructType):
        return _record(path, found, kind)
    wanted = _spark_type(kind)
    if found == wanted or _is_converted(found, wanted):
        return wanted
    if _is_written_as(found, name, kind):
        return found
    raise _refusal(path, found, kind)


def _record(path: str, found: StructType, kind: dict[str, Any]) -> StructType:
    wanted = {field["name"]: field["type"] for field in kind["fields"]}
    required = {name for name, avro_type in wanted.items() if not branches(avro_type)[1]}
    if not required <= set(found.names) <= set(wanted):
        raise ReadModelError(
            f"{path} has {sorted(found.names)}, but the record {kind['name']} has {sorted(wanted)}: give these."
        )
    return StructType(
        [
            StructField(f.name, written_type(f"{path}.{f.name}", f.dataType, wanted[f.name]), f.nullable)
            for f in found.fields
        ]
    )


def _union(path: str, found: DataType, kinds: list[Any]) -> DataType:
    """Return the type for a union of several types: the struct that Spark decodes, with a member for each type. One member is not null."""
    members = [f"member{i}" for i in range(len(kinds))]
    if isinstance(found, NullType):
        found = StructType([StructField(name, NullType()) for name in members])
    # Spark decodes these as one type, and writes that.
    merged = {frozenset(("int", "long")): LongType(), frozenset(("float", "double")): DoubleType()}
    number = merged.get(frozenset(kind for kind in kinds if isinstance(kind, str)))
    if number is not None and len(kinds) == 2 and isinstance(found, NumericType):  # noqa: PLR2004 - a pair of types
        return written_type(path, found, "long" if number == LongType() else "double")
    if not isinstance(found, StructType) or found.names != members:
        raise ReadModelError(
            f"{path} is {found.simpleString()}, but its type is a union of {len(kinds)} types: give a struct of {', '.join(members)}."
        )
    return StructType(
        [
            StructField(f.name, written_type(f"{path}.{f.name}", f.dataType, kind), f.nullable)
            for f, kind in zip(found.fields, kinds, strict=True)
        ]
    )


def _spark_type(avro_type: Any) -> DataType:  # noqa: ANN401, PLR0911 - as above
    """Return the type that Spark decodes an Avro type as."""
    kinds, _ = branches(avro_type)
    if len(kinds) != 1:
        members = [StructField(f"member{i}", _spark_type(kind)) for i, kind in enumerate(kinds)]
        return StructType(members) if members else NullType()
    kind = kinds[0]
    name = kind["type"] if isinstance(kind, dict) else kind
    if isinstance(name, dict | list):
        return _spark_type(name)
    logical = kind.get("logicalType") if isinstance(kind, dict) else None
    if name == "array":
        return ArrayType(_spark_type(kind["items"]))
    if name == "map":
        return MapType(StringType(), _spark_type(kind["values"]))
    if name == "record":
        return StructType([StructField(f["name"], _spark_type(f["type"])) for f in kind["fields"]])
    if logical == "decimal":
        return DecimalType(kind["precision"], kind.get("scale", 0))
    return LOGICAL.get((name, str(logical)), PLAIN[name])


def _is_converted(found: DataType, wanted: DataType) -> bool:
    """Return whether a cast keeps the value, apart from digits behind those that a decimal or a float has.

    A value beyond the range of the wanted type cannot be cast: its record is not written.
    """
    match wanted:
        case DecimalType():
            return isinstance(found, NumericType | StringType)
        case FloatType() | DoubleType():
            return isinstance(found, NumericType)
        case IntegerType() | LongType():
            return isinstance(found, WHOLE) or (isinstance(found, DecimalType) and found.scale == 0)
    return False


def _is_written_as(found: DataType, name: str, kind: Any) -> bool:  # noqa: ANN401 - JSON of any shape
    """Return whether Spark writes a value of this type as it is: the number of a time, or a time as its milliseconds."""
    logical = kind.get("logicalType") if isinstance(kind, dict) else None
    if isinstance(found, TimestampType | TimestampNTZType):
        return name == "long" and logical is None
    return logical is not None and isinstance(
        found, {"int": IntegerType, "long": LongType}.get(name, NullType)
    )


def _refusal(path: str, found: DataType, kind: Any) -> ReadModelError:  # noqa: ANN401 - JSON of any shape
    return ReadModelError(
        f"{path} is {found.simpleString()}, which cannot be written as {_spark_type(kind).simpleString()}: cast it in the declaration."
    )
