"""Decodes the state records in a changelog: Avro in Confluent's wire format, with the schema of the given id.

Most of the cost is in decimals and timestamps. `RawDecoder` leaves them as Avro stores them, for readers that need only a record's position
or convert fields themselves.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import fastavro

from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import UndecodableError, split
from include.position import OCCURRED_ON, Position, position_values

TIMES_OF_DAY = (("logicalType", "time-millis"), ("logicalType", "time-micros"))
OF_LOGICAL_TYPES = frozenset({"logicalType", "precision", "scale"})


@dataclass(frozen=True)
class StateRecord:
    """One state record: the state's own fields, the position up to which they are folded, and the newest event's time."""

    state: dict[str, Any]
    position: Position
    occurred_on: datetime

    @property
    def event_count(self) -> int:
        """The number of events folded into the record."""
        return self.position.event_count


def decode_state_record(value: bytes, schema_of: Callable[[int], RecordSchema]) -> StateRecord:
    """Decode a changelog value; `schema_of` returns the schema of an id.

    Raises UndecodableError, a ValueError, when the value is not framed or its payload is not a state record of the schema.
    """
    schema_id, payload = split(value)
    fields = _fields(payload, _parsed(schema_of(schema_id).text), schema_id)
    position, occurred_on = Position.take_from(fields), fields.pop(OCCURRED_ON.name)
    return StateRecord(fields, position, occurred_on)


class RawDecoder:
    """Decodes state records without their logical types.

    `schema_text` returns a schema by its id, or None for an unknown id; it may raise when the registry is
    unavailable, and that error is not caught here.
    """

    def __init__(self, schema_text: Callable[[int], str | None]) -> None:
        self._schema_text = schema_text
        self._parsed: dict[int, Any] = {}

    def fields(self, value: bytes) -> dict[str, Any]:
        """Return a state record's fields; raises UndecodableError."""
        schema_id, payload = split(value)
        return _fields(payload, self._parsed.get(schema_id) or self._parse(schema_id), schema_id)

    def _parse(self, schema_id: int) -> Any:  # noqa: ANN401 - fastavro's parsed schemas have no public type
        text = self._schema_text(schema_id)
        if text is None:
            message = f"schema id {schema_id} is unknown to the registry"
            raise UndecodableError(message)
        self._parsed[schema_id] = fastavro.parse_schema(without_logical_types(json.loads(text)))
        return self._parsed[schema_id]


def _fields(payload: bytes, schema: Any, schema_id: int) -> dict[str, Any]:  # noqa: ANN401 - as of `_parse`
    try:
        read: Any = fastavro.schemaless_reader(io.BytesIO(payload), schema, None)
        fields: dict[str, Any] = read
        position_values(fields)  # raises if one is missing
    except Exception as error:
        message = f"record of {len(payload)} bytes does not match schema {schema_id}: {error!r}"
        raise UndecodableError(message) from error
    return fields


@cache
def _parsed(schema_text: str) -> Any:  # noqa: ANN401 - as of `_parse`
    return fastavro.parse_schema(_with_plain_times_of_day(json.loads(schema_text)))


def _with_plain_times_of_day(schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return an Avro schema whose times of day are numbers, as they are for Spark, which folds and checks them."""
    if isinstance(schema, list):
        return [_with_plain_times_of_day(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _with_plain_times_of_day(one) for name, one in schema.items() if (name, one) not in TIMES_OF_DAY
    }


def without_logical_types(schema: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return an Avro schema with each logical type replaced by its underlying type."""
    if isinstance(schema, list):
        return [without_logical_types(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {
        name: without_logical_types(part) for name, part in schema.items() if name not in OF_LOGICAL_TYPES
    }
    return bare["type"] if set(bare) == {"type"} else bare
