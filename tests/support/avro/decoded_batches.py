"""Events of batches of records, decoded at once and one by one."""

import json
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from confluent_kafka import murmur2

from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection
from include.kafka.schema_ids import SchemaIds
from include.kafka.wire_format import header
from include.replay.batch_decoding import BatchDecoder, Records
from include.replay.decoding import RecordDecoder, UnknownSchemaIdError
from tests.support.avro.payloads import varint

PARTITIONS = 4
KEY = b"a key"
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
# The encodings of KEY as a text, and of a time.
TEXT, TIME = varint(len(KEY)) + KEY, varint(0)
Avro = Any
# Offset -> the event type and the fields, in Arrow's types and back.
Events = dict[int, tuple[str, Any]]


def decoder_of(
    *writers: str, reader: str | None = None, rejected: dict[int, Rejection] | None = None
) -> BatchDecoder:
    """Return a decoder of one event type, whose writers have the schema ids 1, 2, and so on."""
    parsed = [RecordSchema.parse(text, "a test") for text in writers]
    readers = (RecordSchema.parse(reader or writers[0], "a test"),)
    ids = SchemaIds(dict(enumerate(parsed, start=1)), rejected or {})
    return BatchDecoder(readers, RecordDecoder.of(readers, ids, PARTITIONS))


def records_of(payloads: Sequence[bytes], schema_id: int = 1, key: bytes = KEY) -> Records:
    """Return records with one key, at offsets 0, 1, and so on, written in 1970."""
    values: list[bytes | None] = [header(schema_id) + one for one in payloads]
    return records_with([(key, value) for value in values])


def records_with(
    pairs: Sequence[tuple[bytes | None, bytes | None]], moved_by: int = 0, time: int = 0
) -> Records:
    """Return records with these keys and values, `moved_by` partitions from where their keys belong."""
    found = Records()
    for offset, (key, value) in enumerate(pairs):
        found.keys.append(key)
        found.values.append(value)
        found.partitions.append((murmur2(key or b"", PARTITIONS) + moved_by) % PARTITIONS)
        found.offsets.append(offset)
        found.times.append(time)
    return found


def one_by_one(decoder: BatchDecoder, records: Records) -> Events:
    """Return the events that the reader of single records finds."""
    found = {}
    for row in range(len(records)):
        try:
            name, event = decoder._decoder.decode(*records.row(row))
        except UnknownSchemaIdError:
            raise
        except Exception:  # noqa: BLE001, S112 - as the decoder does
            continue
        kind = decoder.schema.field(f"event:{name}").type
        found[records.offsets[row]] = (name, comparable(pa.array([event], kind).to_pylist()[0]))
    return found


def at_once(decoder: BatchDecoder, records: Records) -> Events:
    """Return the events of a batch."""
    batch = decoder.decode(records)
    batch.validate(full=True)
    assert batch.schema == decoder.schema
    return {
        row["record:offset"]: (row["record:event_type"], comparable(row[f"event:{row['record:event_type']}"]))
        for row in batch.to_pylist()
    }


def comparable(value: Any) -> Any:  # noqa: ANN401 - a value of any type
    """Return a value as one that equals another only if both are the same, of a double bit by bit."""
    match value:
        case dict():
            return {name: comparable(one) for name, one in value.items()}
        case list() | tuple():
            return [comparable(one) for one in value]
        case float():
            return "NaN" if value != value else struct.pack("<d", value)  # noqa: PLR0124 - not a number
    return value


def event(*types: Avro, name: str = "Event", time: Avro = MILLIS, properties: Avro = None) -> str:
    """Return the schema of an event with a time and the fields f0, f1, ... of these types."""
    fields = [{"name": "occurredOn", "type": time}]
    fields += [{"name": f"f{number}", "type": one} for number, one in enumerate(types)]
    return json.dumps({"type": "record", "name": name, "fields": fields} | (properties or {}))


def raw(value: bytes) -> bytes:
    """Return the encoding of bytes or a text."""
    return varint(len(value)) + value
