"""Events as other programs might write them: with another schema of the same event type, or with values that cannot be represented."""

import io
import json
from typing import Any

import fastavro

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import header
from tests.support.stream_process import EventSource


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """Return a decimal over bytes."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def timestamp(unit: str) -> dict[str, Any]:
    """Return a timestamp of a unit, such as `micros`."""
    return {"type": "long", "logicalType": f"timestamp-{unit}"}


def with_types(event_type: str, **types: Any) -> RecordSchema:  # noqa: ANN401 - Avro types are JSON of any shape
    """Return the schema of an event type with other types of these fields."""
    schema = event_schema(event_type).parsed()
    for field in schema["fields"]:
        field["type"] = types.get(field["name"], field["type"])
    return RecordSchema.parse(json.dumps(schema), f"{event_type} with {types}")


def payload(schema: RecordSchema, event: dict[str, Any]) -> bytes:
    """Return the Avro encoding of an event; fields with a logical type may be given as the bytes or numbers that encode them."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema.parsed()), event)
    return out.getvalue()


class ForeignWriter:
    """Writes events of one schema, registered for the topic, as another program might."""

    def __init__(self, source: EventSource, schema: RecordSchema) -> None:
        self._source = source
        self._schema = schema
        self._header = header(source.registry.register(source.topic, schema))

    def append(self, event: dict[str, Any], replace: tuple[bytes, bytes] = (b"", b"")) -> None:
        """Append an event under the key of its customer, after replacing bytes in key and value."""
        self._source.append_raw(
            str(event["customerId"]).encode().replace(*replace),
            self._header + payload(self._schema, event).replace(*replace),
        )
        self._source.flush()
