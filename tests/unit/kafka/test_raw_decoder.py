"""A state record's position is decoded without logical types, for any state schema."""

import pytest

from include.kafka.state_record import RawDecoder, without_logical_types
from include.kafka.wire_format import UndecodableError, header
from include.read_models.balance.model import READ_MODEL
from tests.unit.query_api.balance_record import SCHEMA_ID, balance_value

SCHEMAS = {SCHEMA_ID: READ_MODEL.state_schema.text}


def test_position_is_read() -> None:
    fields = RawDecoder(SCHEMAS.get).fields(balance_value())

    assert (fields["event_count"], fields["source_partition"], fields["source_offset"]) == (3, 0, 42)
    assert int.from_bytes(fields["amount"], "big") == 500


@pytest.mark.parametrize(
    "bad", [b"", b"\x01\x00\x00\x00\x07xx", header(8) + b"x", balance_value()[:9], header(7)]
)
def test_invalid_value_is_undecodable(bad: bytes) -> None:
    with pytest.raises(UndecodableError):
        RawDecoder(SCHEMAS.get).fields(bad)


def test_logical_types_are_removed_at_every_depth() -> None:
    schema = {"type": "array", "items": ["null", {"type": "long", "logicalType": "timestamp-millis"}]}

    assert without_logical_types(schema) == {"type": "array", "items": ["null", "long"]}
