"""Decodes events with fastavro in Python workers, for staging: a second opinion must not share the decoder that it checks.

The rules are those of `decode` and `event_rules`, implemented again; only the comparison of logical types is shared.
"""

import gc
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka import murmur2
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from include.kafka.logical_types import LogicalType, field_types
from include.kafka.record_key import MAX_KEY_BYTES
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_rejections import Rejection
from include.kafka.wire_format import HEADER_BYTES, MAGIC
from spark_jobs.folding.decode import UNKNOWN_SCHEMA_ID, EventDecoder
from spark_jobs.folding.event_rules import (
    CREATION_TOLERANCE_HOURS,
    FIRST_DAY,
    LAST_DAY,
    is_not_record_key,
)

EVENT_COLUMNS = ("key", "partition", "offset", "event_type")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_TIME = EPOCH + timedelta(days=FIRST_DAY)
END_TIME = EPOCH + timedelta(days=LAST_DAY + 1)


class RejectedError(ValueError):
    """A record that is not folded."""


class UnknownSchemaIdError(Exception):
    """A record whose schema id is not known, and not rejected either: the job fails. Has the text that `decode` raises."""

    def __init__(self, header: bytes) -> None:
        super().__init__(f"{UNKNOWN_SCHEMA_ID}={header.hex().upper()}")


def independently_decoded(records: DataFrame, decoder: EventDecoder) -> DataFrame:
    """Return the events among the records of Spark's Kafka source: the columns of `good_events(decoder.decode(records))`.

    The Python of the executors needs fastavro, pyarrow and confluent-kafka.
    """
    present = [reader for reader in decoder.readers if decoder.folded_ids(reader)]
    names = [*EVENT_COLUMNS, *(reader.name for reader in present)]
    schema = decoder.decode(records).select(*names).schema
    ids = decoder.schema_ids
    task = DecodingTask(
        schema.json(),
        {
            schema_id: (ids.writers[schema_id].text, reader)
            for reader in present
            for schema_id in decoder.folded_ids(reader)
        },
        decoder.partitions,
        dict(ids.rejected),
        frozenset(ids.writers) if ids.stop_at_unknown else None,
    )
    decoded = records.select(*task.record_columns).mapInArrow(task, schema)
    shared = (
        coalesce(*(col(f"{r.name}.{name}") for r in present)).alias(name) for name in decoder.shared_fields
    )
    events = decoded.select("*", *shared)
    # The read model's own expression, as in its fold.
    return events if decoder.record_key is None else events.where(~is_not_record_key(decoder.record_key()))


@dataclass(frozen=True)
class DecodingTask:
    """What a Python worker does with its records.

    schema: the result's Spark schema as JSON. events: schema id -> (the writer's schema, the reader's). rejected: schema id -> the
    records that are rejected. known: the ids of all known schemas; any other one that is not rejected fails the task. None: none does.
    """

    schema: str
    events: Mapping[int, tuple[str, RecordSchema]]
    partitions: int
    rejected: Mapping[int, Rejection]
    known: AbstractSet[int] | None

    @property
    def record_columns(self) -> tuple[str, ...]:
        """The columns of the records, in the order of `_row`'s arguments; a record's time is needed only for event types with a lifetime."""
        has_lifetime = any(reader.lifetime is not None for _, reader in self.events.values())
        return ("key", "value", "partition", "offset", *(("timestamp",) if has_lifetime else ()))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of each batch of records."""
        schema = to_arrow_schema(StructType.fromJson(json.loads(self.schema)))
        # Thousands of rows at a time, none in a reference cycle: looking for cycles takes a tenth of the time.
        gc.disable()
        try:
            for batch in batches:
                columns = (batch.column(name).to_pylist() for name in self.record_columns)
                records = zip(*columns, strict=True)
                rows = [row for record in records if (row := self._row(*record)) is not None]
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
        finally:
            gc.enable()

    def _row(
        self,
        key: bytes | None,
        value: bytes | None,
        partition: int,
        offset: int,
        time: datetime | None = None,
    ) -> dict[str, Any] | None:
        try:
            name, event = self._event(key, value, partition, offset, time)
        except UnknownSchemaIdError:
            raise
        except Exception:  # noqa: BLE001 - a payload that does not fit its schema raises anything
            return None
        return {"key": key, "partition": partition, "offset": offset, "event_type": name, name: event}

    def _event(
        self, key: bytes | None, value: bytes | None, partition: int, offset: int, time: datetime | None
    ) -> tuple[str, dict[str, Any]]:
        if key is None or value is None or len(value) < HEADER_BYTES or value[0] != MAGIC:
            raise RejectedError
        schema_id = int.from_bytes(value[1:HEADER_BYTES], "big")
        event_type, rejection = self._event_types.get(schema_id), self.rejected.get(schema_id)
        if rejection is not None and rejection.includes(partition, offset):
            raise RejectedError
        if event_type is None:
            if self.known is not None and schema_id not in self.known:
                raise UnknownSchemaIdError(value[:HEADER_BYTES])
            raise RejectedError
        event = event_type.read(value)
        text = key.decode()
        if not 0 < len(key) <= MAX_KEY_BYTES or murmur2(key, self.partitions) != partition:
            raise RejectedError
        entity = event_type.reader.key_field and event.get(event_type.reader.key_field)
        if entity is not None and entity != text:
            raise RejectedError
        lifetime = event_type.reader.lifetime
        if lifetime is not None and time is not None:
            created = event[lifetime.created]
            if (
                not created - timedelta(hours=CREATION_TOLERANCE_HOURS)
                <= time
                <= created + timedelta(hours=lifetime.hours)
            ):
                raise RejectedError
        return event_type.reader.name, event

    @cached_property
    def _event_types(self) -> dict[int, "EventType"]:
        return {
            number: EventType(RecordSchema.parse(text, "writer"), reader)
            for number, (text, reader) in self.events.items()
        }


class EventType:
    """Reads the records of one schema id as one event type."""

    def __init__(self, writer: RecordSchema, reader: RecordSchema) -> None:
        self.reader = reader
        self._written: Any = fastavro.parse_schema(writer.parsed())
        wanted = reader.renamed_like(writer).parsed()
        # Resolving one schema against another takes twice the time, also where both are the same.
        self._wanted: Any = None if wanted == writer.parsed() else fastavro.parse_schema(wanted)
        types = field_types(reader)
        self._logical = {
            name: logical for name, t in types.items() if (logical := LogicalType.of(t)) is not None
        }

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the event's fields; raises any exception for an invalid payload."""
        payload = io.BytesIO(value)
        payload.seek(HEADER_BYTES)
        event: Any = fastavro.schemaless_reader(payload, self._written, self._wanted)
        for name, logical in self._logical.items():
            event[name] = _value(event[name], logical)
        if event["occurredOn"] is None:
            raise RejectedError
        return dict(event)


def _value(value: Any, logical: LogicalType) -> Any:  # noqa: ANN401 - a value of any Avro type
    """Return a value with the reader's logical type; fastavro gives the writer's, or a default without any."""
    match value:
        case Decimal():
            return _decimal(value, logical)
        case datetime():
            return _time(value, logical)
        case date() if not FIRST_DAY <= (value - EPOCH.date()).days <= LAST_DAY:
            raise RejectedError
        case str() if logical.name == "decimal":  # a default: bytes as a string
            unscaled = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            return Decimal(unscaled).scaleb(-logical.scale)
        case int() if logical.name.startswith("timestamp"):  # a default
            unit = timedelta(milliseconds=1) if logical.name.endswith("millis") else timedelta(microseconds=1)
            return EPOCH + value * unit
    return value


def _decimal(value: Decimal, logical: LogicalType) -> Decimal:
    if abs(value) >= Decimal(10) ** (logical.precision - logical.scale):
        raise RejectedError
    return value


def _time(value: datetime, logical: LogicalType) -> datetime:
    moment = value if value.tzinfo else value.replace(tzinfo=UTC)
    if not FIRST_TIME <= moment < END_TIME:
        raise RejectedError
    if logical.name.endswith("-millis") and value.microsecond % 1000:
        return value.replace(microsecond=value.microsecond // 1000 * 1000)
    return value
