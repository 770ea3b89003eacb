"""Payloads are read in Python as Avro's Java library reads them: also damaged ones, and what only the writer has."""

import json
from decimal import Context, Decimal
from typing import Any

import pytest

from include.kafka.avro.avro_types import avro_type
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import HEADER_BYTES
from include.replay.avro.avro_bytes import InvalidPayloadError, read_int, read_long
from include.replay.avro.avro_reading import reading
from include.replay.decoding import EventType, RejectedError
from tests.support.avro.payloads import varint

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
ENUM = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
YEAR_10000_MILLIS = 253_402_300_800_000
TREE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
Avro = Any


def read(writer: Avro, payload: bytes, reader: Avro = None) -> Any:  # noqa: ANN401 - a value of any type
    value, end = reading(avro_type(writer), avro_type(writer if reader is None else reader))(payload, 0)
    assert end == len(payload)
    return value


def record(**fields: Avro) -> dict[str, Avro]:
    return {"type": "record", "name": "Part", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


@pytest.mark.parametrize(
    ("definition", "payload", "value"),
    [
        ("int", b"\x80\x80\x80\x80\x10", 0),
        ("long", b"\xff" * 9 + b"\x01", -(2**63)),
        ("boolean", b"\x02", False),
        ({"type": "array", "items": "int"}, b"\x04\x02\x04\x00", [1, 2]),
        ({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x00", [1, 2]),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02a\x04\x00", [("a", 2)]),
        (DECIMAL, b"\x04\x00\x7d", Decimal("1.25")),
        (MILLIS, b"\x02", 1_000),
        (["null", "int", "string"], b"\x04\x02a", {"member1": "a"}),
        (["null", "int", "string"], b"\x00", None),
        (["null", "string"], b"\x02\x02a", "a"),
        (["int", "long"], b"\x00\x02", 1),
    ],
    ids=str,
)
def test_payload_has_this_value(definition: Avro, payload: bytes, value: object) -> None:
    assert read(definition, payload) == value


@pytest.mark.parametrize(
    ("definition", "payload"),
    [
        ("int", b"\x80" * 5 + b"\x00"),
        ("long", b"\x80" * 10 + b"\x00"),
        ("string", b"\x01"),
        ("string", b"\x04a"),
        ("string", b"\x02\xff"),
        ("bytes", b"\x06ab"),
        (DECIMAL, b"\x00"),
        (DECIMAL, b"\x04\x27\x10"),
        (ENUM, b"\x04"),
        (ENUM, b"\x01"),
        (["null", "int"], b"\x04"),
        (["null", "int"], b"\x01"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f"),
    ],
    ids=str,
)
def test_damaged_payload_is_rejected(definition: Avro, payload: bytes) -> None:
    with pytest.raises((InvalidPayloadError, IndexError, UnicodeDecodeError)):
        read(definition, payload)


def test_ints_and_longs_of_any_size() -> None:
    assert read_int(b"\xff\xff\xff\xff\x0f", 0) == (-(2**31), 5)
    assert read_long(b"\x00", 0) == (0, 1)


def test_what_only_the_writer_has_is_passed_over() -> None:
    # Three nodes, a text that is not UTF-8, a block with its size, an enum out of range.
    writer = record(
        tree=TREE, text="string", list={"type": "array", "items": "long"}, colour=ENUM, kept="int"
    )
    payload = b"\x02\x02\x00" + b"\x02\xff" + b"\x01\x02\x08\x00" + b"\x08" + b"\x06"

    assert read(writer, payload, record(kept="int")) == {"kept": 3}


@pytest.mark.parametrize(("writer", "value"), [("int", 16_777_217), ("long", 2**53 + 1)])
def test_number_is_rounded_once_when_it_is_promoted(writer: str, value: int) -> None:
    encoded = {16_777_217: b"\x82\x80\x80\x10", 2**53 + 1: b"\x82\x80\x80\x80\x80\x80\x80\x20"}[value]

    assert read(writer, encoded, "float") == float(2 ** (24 if writer == "int" else 53))
    assert read(writer, encoded, "double") == float(value)


def test_time_outside_the_years_that_are_folded_is_rejected_at_any_depth() -> None:
    definition = {"type": "array", "items": ["null", MILLIS]}
    payload = varint(1) + varint(1) + varint(YEAR_10000_MILLIS) + varint(0)
    with pytest.raises(InvalidPayloadError):
        read(definition, payload)


def test_a_decimal_of_many_digits_fits_a_reader_with_more() -> None:
    digits = 10**33 - 1
    writer, reader = (event_of(precision, scale) for precision, scale in ((33, 30), (35, 32)))
    payload = varint(0) + varint(14) + (-digits).to_bytes(14, "big", signed=True)

    event = EventType(writer, reader).read(b"\0" * HEADER_BYTES + payload)

    assert event["amount"] == Decimal(-digits).scaleb(-30, Context(prec=40))


def test_a_decimal_beyond_the_digits_of_the_reader_is_rejected() -> None:
    writer, reader = event_of(33, 30), event_of(34, 32)
    payload = varint(0) + varint(14) + (10**33 - 1).to_bytes(14, "big", signed=True)

    with pytest.raises(RejectedError):
        EventType(writer, reader).read(b"\0" * HEADER_BYTES + payload)


def event_of(precision: int, scale: int) -> RecordSchema:
    """Return the schema of an event with a decimal of these digits."""
    amount = DECIMAL | {"precision": precision, "scale": scale}
    fields = [{"name": "occurredOn", "type": MILLIS}, {"name": "amount", "type": amount}]
    return RecordSchema.parse(json.dumps({"type": "record", "name": "Event", "fields": fields}), "a test")
