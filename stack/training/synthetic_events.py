"""Events with made-up values, for any Avro schema.

Not `fastavro.utils.generate_one`, whose values are random: strings of any bytes, timestamps outside the years that are folded, and a
new key for each event.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from include.kafka.events import GenericEvent
from include.kafka.record_schema import RecordSchema

# Few keys, each with several events.
KEYS = 1_000


def synthetic_event(schema: RecordSchema, number: int) -> GenericEvent:
    """Return an event that is valid under its schema; its key is one of KEYS."""
    values = _Values(number).record(schema.parsed())
    if schema.key_field is not None:
        values[schema.key_field] = f"training-{number % KEYS}"
    return GenericEvent(schema, values)


class _Values:
    """Makes a value of each Avro type. Source of the types: Apache Avro specification 1.12."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._named: dict[str, Any] = {}
        self._plain: dict[str, Any] = {
            "null": None,
            "boolean": True,
            "int": number % KEYS,
            "long": number % KEYS,
            "float": 0.5,
            "double": 0.5,
            "bytes": b"training",
            "string": f"training-{number}",
        }

    def record(self, schema: dict[str, Any]) -> dict[str, Any]:
        self._named[schema["name"]] = schema
        return {field["name"]: self.value(field["type"]) for field in schema["fields"]}

    def value(self, avro_type: Any) -> Any:  # noqa: ANN401 - an Avro schema is JSON of any shape
        if isinstance(avro_type, list):
            # Also ends a schema that contains itself: such a field is optional.
            return None if "null" in avro_type else self.value(avro_type[0])
        if isinstance(avro_type, str):
            named = self._named.get(avro_type)
            return self._plain[avro_type] if named is None else self.value(named)
        return self._complex(avro_type)

    def _complex(self, avro_type: dict[str, Any]) -> Any:  # noqa: ANN401 - a value of any type
        kind = avro_type["type"]
        if "name" in avro_type:
            self._named[avro_type["name"]] = avro_type
        makers: dict[str, Callable[[], Any]] = {
            "record": lambda: self.record(avro_type),
            "enum": lambda: avro_type["symbols"][0],
            "array": lambda: [self.value(avro_type["items"])],
            "map": lambda: {"training": self.value(avro_type["values"])},
            "fixed": lambda: bytes(avro_type["size"]),
        }
        logical = self._logical(avro_type)
        if logical is not None:
            return logical
        return makers[kind]() if kind in makers else self.value(kind)

    def _logical(self, avro_type: dict[str, Any]) -> Any:  # noqa: ANN401 - a value of any type
        match str(avro_type.get("logicalType", "")):
            case "decimal":
                # One digit, which every precision has.
                return Decimal(self._number % 10).scaleb(-int(avro_type.get("scale", 0)))
            case "date":
                return date(2026, 1, 1)
            case "uuid":
                return str(uuid.UUID(int=self._number))
            case name if name.startswith("timestamp-"):
                return datetime.now(UTC)
        return None
