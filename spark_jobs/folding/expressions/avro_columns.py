"""Columns as the fields of an Avro record: each is cast to its field's type, or refused by name where Avro cannot have it."""

from collections.abc import Mapping, Sequence

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
from include.kafka.avro.avro_types import AvroType, avro_type
from include.kafka.logical_types import LogicalType
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
NULL, LONG, DOUBLE = (AvroType(kind, kind) for kind in ("null", "long", "double"))
# What Spark decodes a union of these types as, and writes as it.
MERGED = {frozenset(("int", "long")): LONG, frozenset(("float", "double")): DOUBLE}


def avro_record(owner: str, schema: RecordSchema, columns: Mapping[str, Column], frame: DataFrame) -> Column:
    """Return a record in Avro, without framing, of the column of each field of its schema; arguments as those of `typed_columns`."""
    typed = typed_columns(owner, schema, columns, frame)
    return to_avro(struct(*(typed[name] for name in field_types(schema))), schema.text)


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


def field_types(schema: RecordSchema) -> dict[str, AvroType]:
    """Return field -> Avro type, in the order of the schema."""
    return {field.name: field.type for field in avro_type(schema.parsed()).fields}


def branches(one: AvroType) -> tuple[tuple[AvroType, ...], bool]:
    """Return the types that a value may have apart from null, and whether it may be null."""
    kinds = one.branches if one.kind == "union" else (one,)
    others = tuple(kind for kind in kinds if kind.kind != "null")
    return others, len(others) < len(kinds)


def nullable(one: AvroType) -> AvroType:
    """Return the type of the same values, and null."""
    return AvroType("union", one.definition, branches=(NULL, *branches(one)[0]))


def written_type(path: str, found: DataType, one: AvroType) -> DataType:  # noqa: PLR0911 - one return for each kind
    """Return the type that a column of type `found` is cast to, so that Spark writes it as this Avro type.

    path: names the value in the message. Raises ReadModelError if there is none.
    """
    kinds, _ = branches(one)
    if not kinds:
        return NullType()
    if len(kinds) > 1:
        return _union(path, found, kinds)
    kind = kinds[0]
    wanted = _spark_type(kind)
    if isinstance(found, NullType) or found == wanted or _is_converted(found, wanted):
        return wanted
    match kind, found:
        case AvroType(kind="array", items=AvroType() as item), ArrayType():
            return ArrayType(written_type(f"{path}[]", found.elementType, item), found.containsNull)
        case AvroType(kind="map", items=AvroType() as item), MapType(keyType=StringType()):
            value = written_type(f"{path}[]", found.valueType, item)
            return MapType(found.keyType, value, found.valueContainsNull)
        case AvroType(kind="record"), StructType():
            return _record(path, found, kind)
    if _is_written_as(found, kind):
        return found
    raise ReadModelError(
        f"{path} is {found.simpleString()}, which cannot be written as {wanted.simpleString()}: cast it in the declaration."
    )


def _record(path: str, found: StructType, kind: AvroType) -> StructType:
    wanted = {field.name: field.type for field in kind.fields}
    required = {name for name, one in wanted.items() if not branches(one)[1]}
    if not required <= set(found.names) <= set(wanted):
        raise ReadModelError(
            f"{path} has {sorted(found.names)}, but the record {kind.name} has {sorted(wanted)}: give these."
        )
    return _struct(path, found, [wanted[name] for name in found.names])


def _union(path: str, found: DataType, kinds: Sequence[AvroType]) -> DataType:
    """Return the type for a union of several types: the struct that Spark decodes, with a member for each type. One member is not null."""
    members = [f"member{i}" for i in range(len(kinds))]
    if isinstance(found, NullType):
        found = StructType([StructField(name, NullType()) for name in members])
    number = MERGED.get(frozenset(kind.kind for kind in kinds if LogicalType.of(kind.definition) is None))
    if number is not None and len(kinds) == 2 and isinstance(found, NumericType):  # noqa: PLR2004 - a pair of types
        return written_type(path, found, number)
    if not isinstance(found, StructType) or found.names != members:
        raise ReadModelError(
            f"{path} is {found.simpleString()}, but its type is a union of {len(kinds)} types: give a struct of {', '.join(members)}."
        )
    return _struct(path, found, kinds)


def _struct(path: str, found: StructType, kinds: Sequence[AvroType]) -> StructType:
    return StructType(
        [
            StructField(f.name, written_type(f"{path}.{f.name}", f.dataType, kind), f.nullable)
            for f, kind in zip(found.fields, kinds, strict=True)
        ]
    )


def _spark_type(one: AvroType) -> DataType:
    """Return the type that Spark decodes an Avro type as."""
    kinds, _ = branches(one)
    if len(kinds) != 1:
        members = [StructField(f"member{i}", _spark_type(kind)) for i, kind in enumerate(kinds)]
        return StructType(members) if members else NullType()
    kind = kinds[0]
    if kind.items is not None:
        item = _spark_type(kind.items)
        return ArrayType(item) if kind.kind == "array" else MapType(StringType(), item)
    if kind.kind == "record":
        return StructType([StructField(field.name, _spark_type(field.type)) for field in kind.fields])
    logical = LogicalType.of(kind.definition)
    if logical is not None and logical.name == "decimal":
        return DecimalType(logical.precision, logical.scale)
    return LOGICAL.get((kind.kind, "" if logical is None else logical.name), PLAIN[kind.kind])


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


def _is_written_as(found: DataType, kind: AvroType) -> bool:
    """Return whether Spark writes a value of this type as it is: the number of a time, or a time as its milliseconds."""
    logical = LogicalType.of(kind.definition)
    if isinstance(found, TimestampType | TimestampNTZType):
        return kind.kind == "long" and logical is None
    return logical is not None and isinstance(
        found, {"int": IntegerType, "long": LongType}.get(kind.kind, NullType)
    )
