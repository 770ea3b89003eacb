"""JSON Schemas of the values that a node returns, from the Avro types of states. docs/api.md, "Values", lists the forms."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from include.declarations.read_model import POSITION_FIELDS, ReadModel, StateField
from include.nodes.field_names import camel

Schema = dict[str, Any]

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
NO_NUMBERS = ["NaN", "Infinity", "-Infinity"]
BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
FLOAT: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "enum": NO_NUMBERS}]}
PRIMITIVES: Mapping[str, Schema] = {
    "null": {"type": "null"},
    "boolean": {"type": "boolean"},
    "int": {"type": "integer", "format": "int32"},
    "long": {"type": "integer", "format": "int64"},
    "float": FLOAT,
    "double": FLOAT,
    "bytes": BASE64,
    "string": {"type": "string"},
}
LOGICAL: Mapping[str, Schema] = {
    "date": {"type": "string", "format": "date"},
    "timestamp-millis": {"type": "string", "format": "date-time"},
    "timestamp-micros": {"type": "string", "format": "date-time"},
    "local-timestamp-millis": {
        "type": "string",
        "description": "A local time in ISO 8601, without an offset.",
    },
    "local-timestamp-micros": {
        "type": "string",
        "description": "A local time in ISO 8601, without an offset.",
    },
    "uuid": {"type": "string", "format": "uuid"},
}


def value_schema(avro_type: Any) -> Schema:  # noqa: ANN401 - JSON of any shape
    """Return the schema of a value of an Avro type; that of any value for a type that refers to another by its name."""
    if isinstance(avro_type, list):
        return _union([value_schema(one) for one in avro_type])
    if isinstance(avro_type, str):
        return dict(PRIMITIVES.get(avro_type, {}))
    kind, logical_type = avro_type["type"], avro_type.get("logicalType")
    if logical_type == "decimal":
        scale = avro_type.get("scale", 0)
        return {
            "type": ["number", "string"],
            "format": "decimal",
            "description": f"An exact decimal with {scale} decimal places, a string with `decimals=string`: do not parse it as a float.",
        }
    if logical_type in LOGICAL:
        return dict(LOGICAL[logical_type])
    if kind in CONTAINERS:
        return CONTAINERS[kind](avro_type)
    return value_schema(kind)


def _union(branches: list[Schema]) -> Schema:
    distinct = [one for number, one in enumerate(branches) if one not in branches[:number]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _record(avro_type: Any) -> Schema:  # noqa: ANN401 - as above
    fields = avro_type["fields"]
    return {
        "type": "object",
        "properties": {field["name"]: value_schema(field["type"]) for field in fields},
        "required": [field["name"] for field in fields],
    }


CONTAINERS: Mapping[str, Callable[[Any], Schema]] = {
    "enum": lambda one: {"type": "string", "enum": list(one["symbols"])},
    "fixed": lambda _: dict(BASE64),
    "array": lambda one: {"type": "array", "items": value_schema(one["items"])},
    "map": lambda one: {"type": "object", "additionalProperties": value_schema(one["values"])},
    "record": _record,
}


def nullable(schema: Schema) -> Schema:
    """Return the schema of a value that may also be null."""
    return _union([schema, {"type": "null"}]) if schema else schema


def field_schema(field: StateField) -> Schema:
    """Return the schema of a field of a state, with its meaning."""
    schema = value_schema(field.avro_type)
    texts = (field.doc, schema.get("description", ""))
    description = " ".join(text for text in texts if text)
    return {**schema, "description": description} if description else schema


def fields_of(model: ReadModel) -> dict[str, StateField]:
    """Return the fields that a lookup can return: those of the state, and of its position."""
    return {field.name: field for field in (*model.state, *POSITION_FIELDS)}


def chosen_fields(model: ReadModel, names: Iterable[str], *, may_lack: bool = False) -> dict[str, Schema]:
    """Return the schemas of some fields of a record: null for one that an older fold lacks, and for all if the record may be missing."""
    fields = fields_of(model)
    return {
        name: nullable(field_schema(fields[name]))
        if may_lack or fields[name].since > 1
        else field_schema(fields[name])
        for name in names
    }


def object_schema(properties: Mapping[str, Schema], *, required: Iterable[str] | None = None) -> Schema:
    """Return the schema of an object whose members are all required, unless `required` lists them. Later releases may add members."""
    names = list(properties if required is None else required)
    return {"type": "object", "properties": dict(properties)} | ({"required": names} if names else {})


def state_schema(model: ReadModel) -> Schema:
    """Return the schema of a whole state: an older version lacks the fields of later fold revisions."""
    properties = {field.name: field_schema(field) for field in model.state}
    return object_schema(properties, required=[field.name for field in model.state if field.since == 1])


def record_schema(state: Schema) -> Schema:
    """Return the schema of a record, whose state has this schema."""
    position = {camel(field.name): field_schema(field) for field in POSITION_FIELDS}
    return object_schema({"key": {"type": "string"}, "state": state, **position})
