"""State records as the changelog carries them: Avro in Confluent's framing, decoded with the schema of their id."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import fastavro

from include.declarations.read_model import read_model
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import split
from include.position import OCCURRED_ON, Position


@dataclass(frozen=True)
class StateRecord:
    """One state record: the state's own fields, the position up to which they are folded, and the newest event's time."""

    state: dict[str, Any]
    position: Position
    occurred_on: datetime

    @property
    def event_count(self) -> int:
        """How many events are folded into the record."""
        return self.position.event_count


def decode_state_record(value: bytes, schema_of: Callable[[int], RecordSchema]) -> StateRecord:
    """Decode a changelog value; `schema_of` gives the schema of an id.

    Raises ValueError when the value is not framed or its payload does not fit the schema.
    """
    schema_id, payload = split(value)
    return _record(payload, schema_of(schema_id).text)


def _record(payload: bytes, schema_text: str) -> StateRecord:
    try:
        fields: Any = fastavro.schemaless_reader(io.BytesIO(payload), _parsed(schema_text), None)
    except (EOFError, IndexError, OverflowError, UnicodeDecodeError) as error:
        message = f"state record of {len(payload)} bytes does not fit its schema: {error!r}"
        raise ValueError(message) from error
    position, occurred_on = Position.take_from(fields), fields.pop(OCCURRED_ON.name)
    return StateRecord(fields, position, occurred_on)


@cache
def _parsed(schema_text: str) -> Any:  # noqa: ANN401 - fastavro's parsed schemas have no type of their own
    return fastavro.parse_schema(json.loads(schema_text))


def event_count_and_amount(value: bytes) -> tuple[int, Decimal]:
    """Return (event_count, amount) of a changelog value of the read model `balance`, without a registry.

    For comparisons with other engines. Raises ValueError when the value is not such a record.
    """
    record = _record(split(value)[1], read_model("balance").state_schema.text)
    return record.event_count, record.state["amount"]
