"""A changelog value, as the stream driver writes it."""

from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO

import fastavro
import pytest

from include.kafka.wire_format import header
from include.read_models.balance import READ_MODEL


@pytest.fixture
def balance_value() -> bytes:
    """The state record of a balance whose newest event has source offset 42; its schema has id 7."""
    record = {
        "amount": Decimal("5.00"),
        "event_count": 3,
        "source_partition": 0,
        "source_offset": 42,
        "occurred_on": datetime(2026, 1, 2, tzinfo=UTC),
    }
    buffer = BytesIO()
    buffer.write(header(7))
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(READ_MODEL.state_schema.parsed()), record)
    return buffer.getvalue()
