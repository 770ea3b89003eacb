"""Decodes events in Python workers, for staging: a second opinion must not share the decoder that it checks.

The rules are those of `decode` and `event_rules`, implemented again; only the comparison of logical types is shared.
"""

import gc
import json
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from confluent_kafka import murmur2
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    VALUE,
    type_column,
)
from include.kafka.avro.avro_types import avro_type
from include.kafka.avro.schema_resolution import with_reader_names
from include.kafka.logical_types import LogicalType, compare, decoded_as, field_types
from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection
from include.kafka.wire_format import HEADER_BYTES, MAGIC, MAX_KEY_BYTES
from spark_jobs.folding.decode import UNKNOWN_SCHEMA_ID, EventDecoder
from spark_jobs.folding.event_rules import (
    CREATION_TOLERANCE_HOURS,
    is_not_record_key,
)
from spark_jobs.folding.expressions.columns import column_of, with_short_names
from spark_jobs.folding.independent.avro_reading import reading

MICROS_PER_HOUR = 3600 * 1_000_000


class RejectedError(ValueError):
    """A record that is not folded."""


class UnknownSchemaIdError(Exception):
    """A record whose schema id is not known, and not rejected either: the job fails. Has the text that `decode` raises."""

    def __init__(self, header: bytes) -> None:
        super().__init__(f"{UNKNOWN_SCHEMA_ID}={header.hex().upper()}")


def independently_decoded(records: DataFrame, decoder: EventDecoder) -> DataFrame:
    """Return the events among the records of Spark's Kafka source: the columns of `good_events(decoder.decode(records))`.

    The Python of the executors needs numpy, pyarrow and confluent-kafka.
    """
    present = [reader for reader in decoder.readers if decoder.folded_ids(reader)]
    record = [column for column in decoder.record_columns if column != VALUE]
    names = [*record, EVENT_TYPE, *(type_column(reader.name) for reader in present)]
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
        coalesce(*(col(f"{type_column(r.name)}.{name}") for r in present)).alias(name)
        for name in decoder.shared_fields
    )
    events = with_short_names(decoded.select("*", *shared), decoder.readers)
    # The read model's own expression, as in its fold.
    return (
        events
        if decoder.record_key is None
        else events.where(~is_not_record_key(column_of(decoder.record_key)))
    )


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
        """The columns of the records, in the order of `_event`'s arguments; a record's time is needed only for event types with a lifetime."""
        has_lifetime = any(reader.lifetime is not None for _, reader in self.events.values())
        return ("key", "value", "partition", "offset", *(("timestamp",) if has_lifetime else ()))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the events of each batch of records."""
        # A schema that cannot be read fails the job; a record that cannot be read does not.
        types = self._event_types()
        schema = to_arrow_schema(StructType.fromJson(json.loads(self.schema)))
        # Thousands of rows at a time, none in a reference cycle: looking for cycles takes a tenth of the time.
        gc.disable()
        try:
            for batch in batches:
                columns = (_numbered(batch.column(name)).to_pylist() for name in self.record_columns)
                records = zip(*columns, strict=True)
                rows = [row for record in records if (row := self._row(types, record)) is not None]
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
        finally:
            gc.enable()

    def _row(self, types: Mapping[int, "EventType"], record: tuple[Any, ...]) -> dict[str, Any] | None:
        try:
            name, event = self._event(types, *record)
        except UnknownSchemaIdError:
            raise
        except Exception:  # noqa: BLE001 - a payload that does not fit its schema raises anything
            return None
        key, _, partition, offset, *time = record
        found = {KEY: key, PARTITION: partition, OFFSET: offset, EVENT_TYPE: name, type_column(name): event}
        return {**found, TIMESTAMP: time[0]} if time else found

    def _event(
        self,
        types: Mapping[int, "EventType"],
        key: bytes | None,
        value: bytes | None,
        partition: int,
        offset: int,
        time: int | None = None,
    ) -> tuple[str, dict[str, Any]]:
        if key is None or value is None or len(value) < HEADER_BYTES or value[0] != MAGIC:
            raise RejectedError
        schema_id = int.from_bytes(value[1:HEADER_BYTES], "big")
        event_type, rejection = types.get(schema_id), self.rejected.get(schema_id)
        if rejection is not None and rejection.includes(partition, offset):
            raise RejectedError
        if event_type is None:
            if self.known is not None and schema_id not in self.known:
                raise UnknownSchemaIdError(value[:HEADER_BYTES])
            raise RejectedError
        event = event_type.read(value)
        # Raises if it is no text.
        key.decode()
        if not 0 < len(key) <= MAX_KEY_BYTES or murmur2(key, self.partitions) != partition:
            raise RejectedError
        entity = event_type.reader.key_field and event.get(event_type.reader.key_field)
        if entity is not None and (entity.encode() if isinstance(entity, str) else entity) != key:
            raise RejectedError
        lifetime = event_type.reader.lifetime
        if lifetime is not None and time is not None:
            age = time - event[lifetime.created]
            if not -CREATION_TOLERANCE_HOURS * MICROS_PER_HOUR <= age <= lifetime.hours * MICROS_PER_HOUR:
                raise RejectedError
        return event_type.reader.name, event

    def _event_types(self) -> dict[int, "EventType"]:
        return {
            number: EventType(RecordSchema.parse(text, "writer"), reader)
            for number, (text, reader) in self.events.items()
        }


def _numbered(column: pa.Array) -> pa.Array:
    """Return the records' times as microseconds; other columns unchanged."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


class EventType:
    """Reads the records of one schema id as one event type."""

    def __init__(self, writer: RecordSchema, reader: RecordSchema) -> None:
        self.reader = reader
        compared = compare(writer, reader)
        wanted = avro_type(decoded_as(reader, compared).renamed_like(writer).parsed())
        self._read = reading(with_reader_names(avro_type(writer.parsed()), wanted), wanted)
        types = field_types(reader)
        self._converted = {
            name: logical
            for name in compared.converted
            if (logical := LogicalType.of(types[name].definition)) is not None
        }

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the event's fields, in the form that Arrow accepts; raises any exception for an invalid payload."""
        event: dict[str, Any] = self._read(value, HEADER_BYTES)[0]
        for name, logical in self._converted.items():
            if event[name] is not None:
                event[name] = _converted(event[name], logical)
        if event["occurredOn"] is None:
            raise RejectedError
        return event


def _converted(value: Any, logical: LogicalType) -> Any:  # noqa: ANN401 - a decimal, or a time in microseconds
    """Return a value of the writer's logical type with the reader's."""
    if isinstance(value, Decimal):
        # `abs` would round to 28 digits.
        if value.copy_abs() >= Decimal(10) ** (logical.precision - logical.scale):
            raise RejectedError
        return value
    # Numbers are rounded down, before 1970 too.
    return value // 1000 * 1000 if logical.name.endswith("-millis") else value
