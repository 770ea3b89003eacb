"""Decodes the state records in a changelog: Avro in Confluent's wire format, with the schema of the given id."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import fastavro

from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import split
from include.position import OCCURRED_ON, Position

TIMES_OF_DAY = (("logicalType", "time-millis"), ("logicalType", "time-micros"))


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

    Raises ValueError when the value is not framed or its payload does not match the schema.
    """
    schema_id, payload = split(value)
    schema = schema_of(schema_id)
    try:
        fields: Any = fastavro.schemaless_reader(io.BytesIO(payload), _parsed(schema.text), None)
    except (EOFError, IndexError, OverflowError, UnicodeDecodeError) as error:
        message = f"state record of {len(payload)} bytes does not match its schema: {error!r}"
        raise ValueError(message) from error
    position, occurred_on = Position.take_from(fields), fields.pop(OCCURRED_ON.name)
    return StateRecord(fields, position, occurred_on)


@cache
def _parsed(schema_text: str) -> Any:  # noqa: ANN401 - fastavro's parsed schemas have no type of their own
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
