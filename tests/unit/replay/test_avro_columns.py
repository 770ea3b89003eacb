"""Payloads that are read at once have the values, or are rejected, as if they were read one by one: of any schema, valid or damaged."""

import json
import struct
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from include.kafka.avro.avro_types import avro_type
from include.kafka.wire_format import HEADER_BYTES, header
from include.replay.avro.avro_cursor import Cursor
from tests.support.avro.decoded_batches import (
    MILLIS,
    TEXT,
    TIME,
    at_once,
    decoder_of,
    event,
    one_by_one,
    raw,
    records_of,
)
from tests.support.avro.payloads import damaged, varint
from tests.support.avro.payloads import payload as payload_of
from tests.support.avro.schemas import SchemaCase, generated_cases

SCHEMAS, PAYLOADS = 300, 20
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
SHORT = DECIMAL | {"precision": 4}
ENUM = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}
Avro = Any


def payloads_of(case: SchemaCase) -> list[bytes]:
    random, writer = Random(case.seed), avro_type(json.loads(case.writer))
    valid = [payload_of(writer, random) for _ in range(PAYLOADS)]
    shuffled = [
        *valid,
        *(damaged(one, random) for one in valid),
        *(flipped(one, random) for one in valid),
        b"",
    ]
    random.shuffle(shuffled)
    return shuffled


def flipped(valid: bytes, random: Random) -> bytes:
    bit = random.randrange(8 * len(valid) or 1)
    return bytes(byte ^ (1 << bit % 8 if place == bit // 8 else 0) for place, byte in enumerate(valid))


def test_any_schemas_payloads_have_the_values_that_they_have_one_by_one() -> None:
    events = read_at_once = 0
    for case in generated_cases(SCHEMAS):
        writer = json.dumps(json.loads(case.writer) | {"name": "Event"})
        decoder, records = decoder_of(writer, reader=case.reader), records_of(payloads_of(case))

        expected = one_by_one(decoder, records)

        assert at_once(decoder, records) == expected, case
        events += len(expected)
        read_at_once += len(expected) if decoder._columns else 0
    assert events > SCHEMAS * PAYLOADS
    assert read_at_once > events / 5


@pytest.mark.parametrize(
    ("avro", "payload", "value"),
    [
        ("long", varint(-(2**63)), -(2**63)),
        ("long", varint(2**55), 2**55),
        ("long", varint(2**62), 2**62),
        ("int", varint(-(2**31)), -(2**31)),
        ("boolean", b"\x02", False),
        ("float", struct.pack("<f", -1.5), -1.5),
        (DECIMAL, raw((10**20 - 1).to_bytes(9, "big", signed=True)), "999999999999999999.99"),
        (DECIMAL, raw((-(10**20) + 1).to_bytes(16, "big", signed=True)), "-999999999999999999.99"),
        (SHORT, raw(b"\xff" * 8), "-0.01"),
        (ENUM, varint(1), "BLUE"),
        (["string", "null"], varint(1), None),
        (["string", "null"], varint(0) + raw("\N{CAT FACE}".encode()), "\N{CAT FACE}"),
        (
            {"type": "array", "items": ["null", "int"]},
            varint(2) + varint(1) + varint(7) + varint(0) * 2,
            [7, None],
        ),
        ({"type": "array", "items": "string"}, varint(0), []),
        ({"type": "fixed", "name": "F", "size": 3}, b"abc", b"abc"),
        ({"type": "record", "name": "Part", "fields": []}, b"", {}),
    ],
    ids=str,
)
def test_a_type_is_read_at_once_with_this_value(avro: Avro, payload: bytes, value: object) -> None:
    decoder = decoder_of(event(avro))
    column, (written,) = decoder._columns[1], decoder._decoder.event_types.values()
    cursor = Cursor.of([TIME + payload] * 3)

    found = column(cursor).field("f0").to_pylist()

    assert cursor.ok.all()
    assert written.read(header(1) + TIME + payload)
    assert [str(one) if isinstance(one, Decimal) else one for one in found] == [value] * 3


@pytest.mark.parametrize(
    ("avro", "payload"),
    [
        ("long", b"\x80" * 10 + b"\0"),
        ("int", varint(2**31)),
        ("int", b"\x80" * 5 + b"\0"),
        ("string", varint(-1)),
        ("string", varint(2) + b"a"),
        ("string", varint(2**62)),
        ("string", varint(1) + b"\xff"),
        ("double", b"1234567"),
        (DECIMAL, varint(0)),
        (DECIMAL, raw((10**20).to_bytes(9, "big", signed=True))),
        (DECIMAL, raw((-(10**20)).to_bytes(9, "big", signed=True))),
        (SHORT, raw(b"\0" * 9)),
        (ENUM, varint(2)),
        (ENUM, varint(-1)),
        (["null", "string"], varint(2)),
        (["null", "string"], varint(-1)),
        ({"type": "array", "items": "int"}, varint(2**40)),
        ({"type": "array", "items": "null"}, varint(65) + varint(0)),
        ({"type": "array", "items": "int"}, varint(1) + varint(7) + varint(1) + varint(7) + varint(0)),
        (MILLIS, varint(253_402_300_800_000)),
        (MILLIS, varint(2**62)),
        ({"type": "int", "logicalType": "date"}, varint(2**30)),
    ],
    ids=str,
)
def test_an_unusual_payload_is_left_to_the_other_reader_and_changes_no_other_one(
    avro: Avro, payload: bytes
) -> None:
    decoder = decoder_of(event(avro, "string"))
    random, one = Random(1), avro_type(avro)
    usual = [TIME + payload_of(one, random) + TEXT for _ in range(4)]
    records = records_of([*usual[:2], TIME + payload, *usual[2:]])

    cursor = Cursor.of([value or b"" for value in records.values])
    cursor.skip(HEADER_BYTES)
    decoder._columns[1](cursor)

    assert not cursor.ok[2]
    assert at_once(decoder, records) == one_by_one(decoder, records)
