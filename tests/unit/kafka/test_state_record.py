"""Changelog values are decoded without loss, or rejected."""

import io
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pytest

from include.declarations.load import read_model
from include.kafka.record_schema import RecordSchema
from include.kafka.state_record import StateRecord, decode_state_record
from include.kafka.wire_format import UndecodableError, header, split
from include.position import Position
from include.read_models.balance.changelog_value import event_count_and_amount

SCHEMA = read_model("balance").state_schema
OCCURRED_ON = datetime(2026, 11, 21, 4, 30, 0, 123000, tzinfo=UTC)


def value(amount: Decimal, schema_id: int = 7) -> bytes:
    buffer = io.BytesIO()
    fields = {
        "amount": amount,
        "event_count": 3,
        "source_partition": 2,
        "source_offset": 41,
        "occurred_on": OCCURRED_ON,
    }
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(SCHEMA.parsed()), fields)
    return header(schema_id) + buffer.getvalue()


@pytest.mark.parametrize("amount", ["0.00", "-0.01", "5.00", "123456789012345678901234567890123456.78"])
def test_amount_keeps_its_scale_and_every_digit(amount: str) -> None:
    assert event_count_and_amount(value(Decimal(amount))) == (3, Decimal(amount))
    assert str(event_count_and_amount(value(Decimal(amount)))[1]) == amount


def test_state_and_position_are_separate() -> None:
    asked: list[int] = []
    record = decode_state_record(value(Decimal("5.00"), schema_id=9), lambda i: asked.append(i) or SCHEMA)  # type: ignore[func-returns-value]  # append
    assert record == StateRecord({"amount": Decimal("5.00")}, Position(2, 41, 3), OCCURRED_ON)
    assert asked == [9]


@pytest.mark.parametrize(
    "damaged", [b"", b"\x00\x00", b"\x01" + value(Decimal(1))[1:], value(Decimal("5.00"))[:9]]
)
def test_value_that_is_not_a_state_record_is_rejected(damaged: bytes) -> None:
    with pytest.raises(ValueError, match=r"framing|does not match"):
        event_count_and_amount(damaged)


def test_record_of_another_type_is_no_state_record() -> None:
    schema = RecordSchema.parse(
        '{"type": "record", "name": "Other", "fields": [{"name": "n", "type": "long"}]}', "a test"
    )
    with pytest.raises(UndecodableError, match="does not match schema 7: KeyError"):
        decode_state_record(header(7) + b"\x02", lambda _: schema)


def test_header_is_a_zero_byte_and_the_id_big_endian() -> None:
    assert header(258) == b"\x00\x00\x00\x01\x02"
    assert split(header(258) + b"rest") == (258, b"rest")
