"""Decodes events in Python: a second opinion must not share the decoder that it checks.

The rules are those of `decode` and `event_rules` in `spark_jobs/folding/`, implemented again; only the comparison of logical types is shared.
"""

import logging
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from confluent_kafka import murmur2

from include.kafka.avro.avro_types import AvroType, avro_type
from include.kafka.avro.schema_resolution import with_reader_names
from include.kafka.logical_types import LogicalType, compare, decoded_as, field_types
from include.kafka.record_schema import CREATION_TOLERANCE_HOURS, RecordSchema
from include.kafka.registry.schema_rejections import Rejection
from include.kafka.schema_ids import UNKNOWN_SCHEMA_ID, SchemaIds
from include.kafka.wire_format import HEADER_BYTES, MAGIC, MAX_KEY_BYTES
from include.replay.avro.avro_reading import reading

LOG = logging.getLogger(__name__)
MICROS_PER_HOUR = 3600 * 1_000_000


class RejectedError(ValueError):
    """A record that is not folded."""


class UnknownSchemaIdError(Exception):
    """A record whose schema id is not known, and not rejected either: look `schema_id` up. Has the text that Spark's decoder raises."""

    def __init__(self, header: bytes) -> None:
        super().__init__(f"{UNKNOWN_SCHEMA_ID}={header.hex().upper()}")
        self.schema_id = int.from_bytes(header[1:], "big")


@dataclass(frozen=True)
class RecordDecoder:
    """Decodes the records of a topic one by one.

    event_types: schema id -> what reads its records. rejected: schema id -> the records that are rejected. known: the ids of all
    known schemas; any other one that is not rejected raises UnknownSchemaIdError. None: none does.
    """

    event_types: "Mapping[int, EventType]"
    partitions: int
    rejected: Mapping[int, Rejection]
    known: AbstractSet[int] | None

    @classmethod
    def of(cls, readers: Iterable[RecordSchema], ids: SchemaIds, partitions: int) -> "RecordDecoder":
        """Return the decoder of a topic's event types; `partitions` is the number of the topic's partitions.

        Records whose schema cannot be read as its event type are rejected.
        """
        event_types = {}
        for reader in readers:
            for schema_id, writer in ids.writers.items():
                if writer.name != reader.name or compare(writer, reader).problem is not None:
                    continue
                try:
                    event_types[schema_id] = EventType(writer, reader)
                except Exception as error:  # noqa: BLE001 - a foreign schema can raise anything; it concerns the records with its id only
                    LOG.warning("records with schema id %d are rejected: %r", schema_id, error)
        return cls(
            event_types, partitions, ids.rejected, frozenset(ids.writers) if ids.stop_at_unknown else None
        )

    def decode(
        self, key: bytes | None, value: bytes | None, partition: int, offset: int, time: int | None
    ) -> tuple[str, dict[str, Any]]:
        """Return the name of a record's event type, and the event's fields in the form that Arrow accepts.

        time: of the Kafka record, in microseconds; needed only for event types with a lifetime. Raises UnknownSchemaIdError; any other
        exception rejects the record.
        """
        event_type = self.event_type_of(key, value, partition, offset)
        assert key is not None and value is not None  # noqa: S101, PT018 - it has an event type
        event = event_type.read(value)
        if self.partition_of(key) != partition:
            raise RejectedError
        event_type.require_entity(event, key)
        event_type.require_age(event, time)
        return event_type.reader.name, event

    def event_type_of(
        self, key: bytes | None, value: bytes | None, partition: int, offset: int
    ) -> "EventType":
        """Return what reads a record; raises RejectedError or UnknownSchemaIdError."""
        if key is None or value is None or len(value) < HEADER_BYTES or value[0] != MAGIC:
            raise RejectedError
        schema_id = int.from_bytes(value[1:HEADER_BYTES], "big")
        event_type, rejection = self.event_types.get(schema_id), self.rejected.get(schema_id)
        if rejection is not None and rejection.includes(partition, offset):
            raise RejectedError
        if event_type is None:
            if self.known is not None and schema_id not in self.known:
                raise UnknownSchemaIdError(value[:HEADER_BYTES])
            raise RejectedError
        return event_type

    def partition_of(self, key: bytes) -> int:
        """Return the partition into which a key belongs; raises ValueError if it is no text, or has an invalid size."""
        key.decode()
        if not 0 < len(key) <= MAX_KEY_BYTES:
            raise RejectedError
        return int(murmur2(key, self.partitions))


class EventType:
    """Reads the records of one schema id as one event type.

    written, wanted: the writer's type, and the type with which its records are read; converted: field -> the reader's logical type, where
    it differs from that of `wanted`.
    """

    def __init__(self, writer: RecordSchema, reader: RecordSchema) -> None:
        self.reader = reader
        compared = compare(writer, reader)
        self.wanted = avro_type(decoded_as(reader, compared).renamed_like(writer).parsed())
        self.written: AvroType = with_reader_names(avro_type(writer.parsed()), self.wanted)
        self._read = reading(self.written, self.wanted)
        types = field_types(reader)
        self.converted = {
            name: logical
            for name in compared.converted
            if (logical := LogicalType.of(types[name].definition)) is not None
        }

    def read(self, value: bytes) -> dict[str, Any]:
        """Return the event's fields, in the form that Arrow accepts; raises any exception for an invalid payload."""
        event: dict[str, Any] = self._read(value, HEADER_BYTES)[0]
        for name, logical in self.converted.items():
            if event[name] is not None:
                event[name] = _converted(event[name], logical)
        if event["occurredOn"] is None:
            raise RejectedError
        return event

    def require_entity(self, event: Mapping[str, Any], key: bytes) -> None:
        """Raise RejectedError if the event's entity is not the record's key."""
        entity = self.reader.key_field and event.get(self.reader.key_field)
        if entity is not None and (entity.encode() if isinstance(entity, str) else entity) != key:
            raise RejectedError

    def require_age(self, event: Mapping[str, Any], time: int | None) -> None:
        """Raise RejectedError if the record's time, in microseconds, is not in the lifetime of the event's item."""
        lifetime = self.reader.lifetime
        if lifetime is not None and time is not None:
            age = time - event[lifetime.created]
            if not -CREATION_TOLERANCE_HOURS * MICROS_PER_HOUR <= age <= lifetime.hours * MICROS_PER_HOUR:
                raise RejectedError


def _converted(value: Any, logical: LogicalType) -> Any:  # noqa: ANN401 - a decimal, or a time in microseconds
    """Return a value of the writer's logical type with the reader's."""
    if isinstance(value, Decimal):
        # `abs` would round to 28 digits.
        if value.copy_abs() >= Decimal(10) ** (logical.precision - logical.scale):
            raise RejectedError
        return value
    # Numbers are rounded down, before 1970 too.
    return value // 1000 * 1000 if logical.name.endswith("-millis") else value
