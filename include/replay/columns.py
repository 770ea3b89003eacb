"""The Arrow types of decoded events, without Spark: those that the decoder's values have, and that Spark's `SchemaConverters` gives the fields."""

from collections.abc import Mapping

import pyarrow as pa

from include.kafka.avro.avro_types import AvroType, avro_type, is_number, without_null
from include.kafka.logical_types import DECODED, LogicalType
from include.kafka.record_schema import RecordSchema

PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
UTC = "UTC"


def event_struct(reader: RecordSchema) -> pa.StructType:
    """Return the struct of an event type's fields, in the order of its schema. All of them may be null; its types are not recursive."""
    return arrow_type(avro_type(reader.parsed()))


def arrow_type(one: AvroType, zone: str | None = UTC) -> pa.DataType:
    """Return the type of a value: times are in microseconds, and a union of several types is a struct of `member0`, `member1`, ...

    zone: of times that are moments; None: they have none, like local times.
    """
    if is_number(one):
        return pa.int64() if any(branch.kind == "long" for branch in one.branches) else pa.float64()
    kept = without_null(one)
    match kept.kind:
        case "union":
            members = [branch for branch in kept.branches if branch.kind != "null"]
            return pa.struct([(f"member{i}", arrow_type(member, zone)) for i, member in enumerate(members)])
        case "record":
            return pa.struct([(field.name, arrow_type(field.type, zone)) for field in kept.fields])
        case "array" | "map" if kept.items is not None:
            items = arrow_type(kept.items, zone)
            return pa.list_(items) if kept.kind == "array" else pa.map_(pa.string(), items)
    logical = LogicalType.of(kept.definition)
    return PLAIN[kept.kind] if logical is None or logical.name not in DECODED else _logical(logical, zone)


def _logical(logical: LogicalType, zone: str | None) -> pa.DataType:
    if logical.name == "decimal":
        return pa.decimal128(logical.precision, logical.scale)
    if logical.name == "date":
        return pa.date32()
    return pa.timestamp("us", tz=None if logical.name.startswith("local-") else zone)
