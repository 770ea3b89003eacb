"""The schemas of new routes and emissions, made of those of their events, and example events for their tests."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel
from include.errors import FoldlakeError
from include.kafka.record_schema import KEY_PROPERTY, RecordSchema

NAMESPACE = "foldlake.events"
PRIVACY = "foldlake.privacy"
# Type without a logical type -> example.
EXAMPLES: Mapping[str, Any] = {
    "string": "a",
    "int": 1,
    "long": 1,
    "float": 1.0,
    "double": 1.0,
    "boolean": True,
    "bytes": b"a",
    "null": None,
}
AT = datetime(2026, 1, 1, tzinfo=UTC)
LOGICAL_EXAMPLES: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "decimal": lambda avro_type: Decimal(1).scaleb(-int(avro_type.get("scale", 0))),
    "timestamp-millis": lambda _: AT,
    "timestamp-micros": lambda _: AT,
    "date": lambda _: AT.date(),
}


def routed_schema(source: RecordSchema, output_type: str, key: str) -> str:
    """Return the schema of a route that keeps every field of its events; raises FoldlakeError if there is no such key."""
    if key not in source.fields:
        raise FoldlakeError(
            f"{source.name} has no field {key!r} that could be the key; its fields: {', '.join(source.fields)}."
        )
    fields = [_without_pseudonym(field) for field in source.parsed()["fields"]]
    return _record(output_type, f"What a route makes of each {source.name}.", key, fields)


def emitted_schema(model: ReadModel, output_type: str, key: str) -> str:
    """Return the schema of an emission: the event's id, time and entity, and every field of the state."""
    own: list[dict[str, Any]] = [
        {"name": "id", "type": "string", "doc": "Id of the event."},
        {"name": "occurredOn", "type": TIMESTAMP_MILLIS, "doc": "When it happened, UTC."},
        {"name": key, "type": "string", "doc": "The entity of the event; also the record's key."},
    ]
    state: list[dict[str, Any]] = [
        {"name": field.name, "type": field.avro_type, "doc": f"After the event: {field.doc}"}
        for field in emitted_fields(model, key)
    ]
    return _record(output_type, f"The state of {model.name} after an event.", key, [*own, *state])


def emitted_fields(model: ReadModel, key: str) -> list[Any]:
    """Return the state fields of an emission; those that the event has, too, are left out."""
    return [field for field in model.state if field.name not in {"id", "occurredOn", key}]


def example(schema: RecordSchema) -> dict[str, Any]:
    """Return an event of a type, without its id and its time."""
    fields = schema.parsed()["fields"]
    return {
        field["name"]: _value(field["type"]) for field in fields if field["name"] not in {"id", "occurredOn"}
    }


def _value(avro_type: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    if isinstance(avro_type, list):
        return _value(next((one for one in avro_type if one != "null"), "null"))
    if isinstance(avro_type, dict):
        logical = LOGICAL_EXAMPLES.get(avro_type.get("logicalType", ""))
        return _complex_value(avro_type) if logical is None else logical(avro_type)
    if avro_type not in EXAMPLES:
        raise FoldlakeError(f"There is no example of the Avro type {avro_type}: write the test by hand.")
    return EXAMPLES[avro_type]


def _complex_value(avro_type: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON of any shape
    match avro_type["type"]:
        case "enum":
            return avro_type["symbols"][0]
        case "array":
            return [_value(avro_type["items"])]
        case "record":
            return {field["name"]: _value(field["type"]) for field in avro_type["fields"]}
        case plain:
            return _value(plain)


def _without_pseudonym(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field of which no further hash is to be made."""
    return {name: value for name, value in field.items() if (name, value) != (PRIVACY, "pseudonym")}


def _record(name: str, doc: str, key: str, fields: list[dict[str, Any]]) -> str:
    record = {"type": "record", "name": name, "namespace": NAMESPACE, "doc": doc, KEY_PROPERTY: key}
    lines = json.dumps(record, indent=2)[:-2]
    listed = ",\n".join(f"    {json.dumps(field)}" for field in fields)
    return f'{lines},\n  "fields": [\n{listed}\n  ]\n}}\n'


def literal(value: object) -> str:
    """Return a value as Python source, formatted as the rest of the checkout: as `repr`, with double quotes."""
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Decimal():
            return f"Decimal({json.dumps(str(value))})"
        case Mapping():
            pairs = (f"{literal(name)}: {literal(item)}" for name, item in value.items())
            return "{" + ", ".join(pairs) + "}"
        case list():
            return "[" + ", ".join(map(literal, value)) + "]"
        case tuple():
            items = ", ".join(map(literal, value))
            return f"({items},)" if len(value) == 1 else f"({items})"
        case _:
            return repr(value)
