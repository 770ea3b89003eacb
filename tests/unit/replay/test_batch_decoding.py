"""Batches of records have the events that satisfy the rules, in order, with one column for each type."""

import pytest

from include.kafka.record_schema import RecordSchema
from include.kafka.registry.schema_rejections import Rejection
from include.kafka.schema_ids import SchemaIds
from include.kafka.wire_format import header
from include.position import Offsets
from include.replay.batch_decoding import BatchDecoder, Records
from include.replay.decoding import RecordDecoder, UnknownSchemaIdError
from tests.support.avro.decoded_batches import (
    KEY,
    MILLIS,
    PARTITIONS,
    TEXT,
    TIME,
    at_once,
    decoder_of,
    event,
    one_by_one,
    raw,
    records_of,
    records_with,
)
from tests.support.avro.payloads import varint

OTHER_KEY = b"b"
HOUR = 3600 * 1_000_000


def test_events_of_several_types_keep_their_order() -> None:
    readers = tuple(RecordSchema.parse(event("int", name=name), "a test") for name in ("A", "B", "Unseen"))
    ids = SchemaIds({1: readers[0], 2: readers[1], 3: RecordSchema.parse(event(name="Other"), "a test")})
    decoder = BatchDecoder(readers, RecordDecoder.of(readers, ids, PARTITIONS))
    good, bad = TIME + varint(7), TIME
    order = [(2, good), (1, good), (1, bad), (3, good), (2, bad), (2, good), (1, good)]

    batch = decoder.decode(records_with([(KEY, header(number) + value) for number, value in order]))

    assert batch.column("record:offset").to_pylist() == [0, 1, 5, 6]
    assert batch.column("record:event_type").to_pylist() == ["B", "A", "B", "A"]
    assert [one is None for one in batch.column("event:A").to_pylist()] == [True, False, True, False]
    assert [one is None for one in batch.column("event:B").to_pylist()] == [False, True, False, True]
    assert batch.column("event:Unseen").null_count == len(batch)


@pytest.mark.parametrize(
    ("pair", "moved_by"),
    [
        ((None, header(1) + TIME + TEXT), 0),
        ((KEY, None), 0),
        ((KEY, b""), 0),
        ((KEY, header(1)), 0),
        ((KEY, b"\x01" + header(1)[1:] + TIME + TEXT), 0),
        ((KEY, header(1) + TIME + TEXT), 1),
        ((OTHER_KEY, header(1) + TIME + TEXT), 0),
        ((b"", header(1) + TIME + varint(0)), 0),
        ((b"\xff", header(1) + TIME + raw(b"\xff")), 0),
        ((b"x" * 257, header(1) + TIME + raw(b"x" * 257)), 0),
    ],
)
def test_a_record_that_breaks_a_rule_is_no_event(
    pair: tuple[bytes | None, bytes | None], moved_by: int
) -> None:
    decoder = decoder_of(event("string", properties={"foldlake.key": "f0"}))
    records = records_with([pair], moved_by)

    assert at_once(decoder, records) == one_by_one(decoder, records) == {}
    assert len(at_once(decoder, records_of([TIME + TEXT]))) == 1


@pytest.mark.parametrize(("hours", "is_event"), [(-1.1, False), (-0.9, True), (1.9, True), (2.1, False)])
def test_an_event_outside_of_its_items_lifetime_is_none(hours: float, *, is_event: bool) -> None:
    lifetime = {"created": "f0", "hours": 2}
    decoder = decoder_of(event(MILLIS, properties={"foldlake.lifetime": lifetime}))
    value = header(1) + TIME + varint(1_795_305_600_123)
    records = records_with([(KEY, value)], time=1_795_305_600_123_000 + round(hours * HOUR))

    assert len(at_once(decoder, records)) == is_event
    assert at_once(decoder, records) == one_by_one(decoder, records)


def test_an_event_without_a_time_is_none() -> None:
    decoder = decoder_of(event(time=["null", MILLIS]))

    assert at_once(decoder, records_of([varint(0), varint(1) + TIME])).keys() == {1}


def test_a_rejected_id_and_an_unknown_one() -> None:
    rejected = {1: Rejection(Offsets(dict.fromkeys(range(PARTITIONS), 2)))}
    decoder = decoder_of(event(), rejected=rejected)

    assert at_once(decoder, records_of([TIME] * 3)).keys() == {2}
    with pytest.raises(UnknownSchemaIdError) as raised:
        decoder.decode(records_of([TIME], schema_id=9))
    assert raised.value.schema_id == 9


def test_a_field_of_another_logical_type_is_converted() -> None:
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    decoder = decoder_of(event(micros), reader=event(MILLIS))
    records = records_of([TIME + varint(1_234_567), TIME + varint(-1)])

    assert [one[1]["f0"].microsecond for one in at_once(decoder, records).values()] == [234_000, 999_000]
    assert at_once(decoder, records) == one_by_one(decoder, records)


def test_a_schema_that_cannot_be_read_rejects_its_records() -> None:
    decoder = decoder_of(
        event("int"), event(["null", {"type": "long", "logicalType": "decimal"}]), reader=event("string")
    )

    assert at_once(decoder, records_of([TIME + varint(1)])) == {}
    assert decoder.decode(Records()).num_rows == 0
