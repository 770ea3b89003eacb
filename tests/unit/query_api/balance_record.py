"""The state record of a balance as the stream driver writes it, for the tests of the query node."""

from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO

import fastavro

from include.kafka.wire_format import header
from include.read_models.balance.model import READ_MODEL

SCHEMA_ID = 7
RECORD = {
    "amount": Decimal("5.00"),
    "event_count": 3,
    "source_partition": 0,
    "source_offset": 42,
    "occurred_on": datetime(2026, 1, 2, tzinfo=UTC),
}


def balance_value(**changed: object) -> bytes:
    """Return RECORD, with some fields changed, as the value of a changelog record."""
    buffer = BytesIO()
    buffer.write(header(SCHEMA_ID))
    fastavro.schemaless_writer(
        buffer, fastavro.parse_schema(READ_MODEL.state_schema.parsed()), RECORD | changed
    )
    return buffer.getvalue()
