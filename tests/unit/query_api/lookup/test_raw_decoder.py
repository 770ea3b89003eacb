"""A state record's position is decoded without logical types, for any state schema."""

import io
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
import pytest

from include.kafka.wire_format import header
from include.read_models.balance.model import READ_MODEL
from query_api.lookup.raw_decoder import RawDecoder, UndecodableError, without_logical_types

SCHEMAS = {7: READ_MODEL.state_schema.text}


def value() -> bytes:
    record = {
        "amount": Decimal("5.00"),
        "event_count": 3,
        "source_partition": 1,
        "source_offset": 42,
        "occurred_on": datetime(2026, 1, 2, tzinfo=UTC),
    }
    buffer = io.BytesIO(header(7))
    buffer.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(READ_MODEL.state_schema.parsed()), record)
    return buffer.getvalue()


def test_position_is_read() -> None:
    fields = RawDecoder(SCHEMAS.get).fields(value())

    assert (fields["event_count"], fields["source_partition"], fields["source_offset"]) == (3, 1, 42)
    assert int.from_bytes(fields["amount"], "big") == 500


@pytest.mark.parametrize("bad", [b"", b"\x01\x00\x00\x00\x07xx", header(8) + b"x", value()[:9], header(7)])
def test_invalid_value_is_undecodable(bad: bytes) -> None:
    with pytest.raises(UndecodableError):
        RawDecoder(SCHEMAS.get).fields(bad)


def test_logical_types_are_removed_at_every_depth() -> None:
    schema = {"type": "array", "items": ["null", {"type": "long", "logicalType": "timestamp-millis"}]}

    assert without_logical_types(schema) == {"type": "array", "items": ["null", "long"]}
