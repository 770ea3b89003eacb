"""Decodes batches of records into Arrow batches of events: those of a schema id at once where that is possible, all others one by one."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from include.declarations.event_types.event_columns import (
    EVENT_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    type_column,
)
from include.kafka.record_schema import CREATION_TOLERANCE_HOURS, RecordSchema
from include.kafka.wire_format import HEADER_BYTES
from include.replay.avro.avro_columns import Column, NoColumnError, column_of
from include.replay.avro.avro_cursor import Cursor, Flags
from include.replay.columns import UTC, event_struct
from include.replay.decoding import MICROS_PER_HOUR, EventType, RecordDecoder, UnknownSchemaIdError

Rows = npt.NDArray[np.int64]
# Whose partitions are computed once.
KNOWN_KEYS = 100_000


@dataclass
class Records:
    """Records of a topic as columns, less than 2 GiB of values. times: those of Kafka, in microseconds since 1970. value_bytes: of all values."""

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    partitions: "array[int]" = field(default_factory=lambda: array("q"))
    offsets: "array[int]" = field(default_factory=lambda: array("q"))
    times: "array[int]" = field(default_factory=lambda: array("q"))
    value_bytes: int = 0

    def extend(self, others: "Records") -> None:
        """Add other records."""
        self.keys += others.keys
        self.values += others.values
        self.partitions += others.partitions
        self.offsets += others.offsets
        self.times += others.times
        self.value_bytes += others.value_bytes

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self.keys)

    def row(self, number: int) -> tuple[bytes | None, bytes | None, int, int, int]:
        """Return a record as the arguments of `RecordDecoder.decode`."""
        return (
            self.keys[number],
            self.values[number],
            self.partitions[number],
            self.offsets[number],
            self.times[number],
        )


def batch_schema(readers: Iterable[RecordSchema]) -> pa.Schema:
    """Return the columns of the events of these types: those of their record, and one struct for each type (event_columns.py)."""
    return pa.schema(
        [
            (KEY, pa.string()),
            (PARTITION, pa.int32()),
            (OFFSET, pa.int64()),
            (TIMESTAMP, pa.timestamp("us", tz=UTC)),
            (EVENT_TYPE, pa.string()),
            *((type_column(reader.name), event_struct(reader)) for reader in readers),
        ]
    )


@dataclass(frozen=True)
class _Part:
    """Some events of one type: the places of their records in the batch, ascending, and their fields."""

    rows: Rows
    events: pa.Array


class BatchDecoder:
    """Decodes batches of records with the rules of a RecordDecoder.

    readers: the event types, in the order of their columns.
    """

    def __init__(self, readers: Sequence[RecordSchema], decoder: RecordDecoder) -> None:
        self.schema = batch_schema(readers)
        self._decoder = decoder
        self._partition_of = lru_cache(KNOWN_KEYS)(self._known_partition)
        self._types = {reader.name: event_struct(reader) for reader in readers}
        self._columns = {
            schema_id: column
            for schema_id, event_type in decoder.event_types.items()
            if schema_id not in decoder.rejected and (column := _column(event_type)) is not None
        }

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the events among the records, in their order, with the columns of `schema`; raises UnknownSchemaIdError."""
        parts: dict[str, list[_Part]] = {name: [] for name in self._types}
        single: list[int] = []
        keys = pa.array(records.keys, pa.binary())
        cursor = Cursor.of([value or b"" for value in records.values])
        headers = cursor.words[cursor.pos].byteswap() >> np.uint64(64 - 8 * HEADER_BYTES)
        is_framed = _flags(keys.is_valid()) & (cursor.end - cursor.pos >= HEADER_BYTES)
        for schema_id in np.unique(headers[is_framed]).tolist():
            # The first byte of the header is that of MAGIC, which is zero, and the others are the id.
            rows = np.flatnonzero(is_framed & (headers == schema_id))
            if schema_id not in self._columns:
                single += rows.tolist()
                continue
            part = cursor.part(rows)
            part.skip(HEADER_BYTES)
            events = self._columns[schema_id](part)
            event_type = self._decoder.event_types[schema_id]
            part.require(_flags(events.field("occurredOn").is_valid()))
            own_keys = keys.take(pa.array(rows))
            part.require(self._partitions_of(own_keys) == _numbers(records.partitions)[rows])
            part.require(_has_entity(event_type, events, own_keys))
            part.require(_is_in_lifetime(event_type, events, _numbers(records.times)[rows]))
            if not part.ok.all():
                single += rows[~part.ok].tolist()
                rows, events = rows[part.ok], events.filter(pa.array(part.ok))
            parts[event_type.reader.name].append(_Part(rows, events))
        for name, found in self._read_singly(records, sorted(single)):
            parts[name].append(found)
        return self._batch(records, keys, parts)

    def _partitions_of(self, keys: pa.Array) -> Rows:
        """Return the partition into which each key belongs, -1 for an invalid one."""
        encoded = keys.dictionary_encode()
        of_keys = np.array([self._partition_of(key) for key in encoded.dictionary.to_pylist()], np.int64)
        found: Rows = of_keys[encoded.indices.to_numpy()]
        return found

    def _known_partition(self, key: bytes) -> int:
        try:
            return self._decoder.partition_of(key)
        except ValueError:
            return -1

    def _read_singly(self, records: Records, rows: Iterable[int]) -> Iterator[tuple[str, _Part]]:
        """Yield the events of each type among these records."""
        found: dict[str, tuple[list[int], list[dict[str, Any]]]] = {}
        for row in rows:
            try:
                name, event = self._decoder.decode(*records.row(row))
            except UnknownSchemaIdError:
                raise
            except Exception:  # noqa: BLE001, S112 - a payload that does not fit its schema raises anything
                continue
            places, events = found.setdefault(name, ([], []))
            places.append(row)
            events.append(event)
        for name, (places, events) in found.items():
            yield name, _Part(np.array(places, np.int64), pa.array(events, self._types[name]))

    def _batch(
        self, records: Records, keys: pa.Array, parts: Mapping[str, Sequence[_Part]]
    ) -> pa.RecordBatch:
        none = np.empty(0, np.int64)
        rows = np.sort(np.concatenate([none, *(part.rows for found in parts.values() for part in found)]))
        types, columns = np.zeros(len(rows), np.int64), []
        for number, (name, found) in enumerate(parts.items()):
            places = np.searchsorted(rows, np.concatenate([none, *(part.rows for part in found)]))
            types[places] = number
            columns.append(_placed(places, [part.events for part in found], len(rows), self._types[name]))
        record = [
            keys.take(pa.array(rows)).cast(pa.string()),
            pa.array(_numbers(records.partitions)[rows], pa.int32()),
            pa.array(_numbers(records.offsets)[rows]),
            pa.array(_numbers(records.times)[rows]).cast(self.schema.field(TIMESTAMP).type),
            pa.array(list(self._types), pa.string()).take(pa.array(types)),
        ]
        return pa.RecordBatch.from_arrays([*record, *columns], schema=self.schema)


def _numbers(column: "array[int]") -> Rows:
    return np.frombuffer(column, np.int64)


def _column(event_type: EventType) -> Column | None:
    """Return what reads the payloads of a schema id at once, if they can be: without a field of another logical type than the reader's."""
    if event_type.converted:
        return None
    try:
        return column_of(event_type.written, event_type.wanted)
    except (NoColumnError, ValueError):
        return None


def _flags(found: pa.Array) -> Flags:
    """Return booleans without nulls."""
    flags: Flags = found.to_numpy(zero_copy_only=False)
    return flags


def _has_entity(event_type: EventType, events: pa.Array, keys: pa.Array) -> Flags:
    """Return whether each event's entity is the key of its record, or null."""
    name = event_type.reader.key_field
    if name not in event_type.reader.fields:
        return np.ones(len(events), np.bool_)
    entity = events.field(name)
    if not (pa.types.is_string(entity.type) or pa.types.is_binary(entity.type)):
        return _flags(entity.is_null())
    is_key = pc.equal(entity.cast(pa.binary()), keys)
    return _flags(pc.fill_null(is_key, True))  # noqa: FBT003 - a value


def _is_in_lifetime(event_type: EventType, events: pa.Array, times: Rows) -> Flags:
    """Return whether each record was written in the lifetime of its event's item."""
    lifetime = event_type.reader.lifetime
    if lifetime is None:
        return np.ones(len(events), np.bool_)
    age: Rows = times - events.field(lifetime.created).cast(pa.int64()).to_numpy()
    return (age >= -CREATION_TOLERANCE_HOURS * MICROS_PER_HOUR) & (age <= lifetime.hours * MICROS_PER_HOUR)


def _placed(places: Rows, events: Sequence[pa.Array], size: int, kind: pa.DataType) -> pa.Array:
    """Return a column with the events at these places, null elsewhere."""
    if not events:
        return pa.nulls(size, kind)
    found = events[0] if len(events) == 1 else pa.concat_arrays(events)
    if len(events) == 1 and len(found) == size:
        return found
    indices, is_null = np.zeros(size, np.int64), np.ones(size, np.bool_)
    indices[places], is_null[places] = np.arange(len(places)), False
    return found.take(pa.array(indices, mask=is_null))
