"""Reads the changelog of `balance` without a schema registry, for comparisons with other engines."""

from decimal import Decimal

from include.kafka.state_record import decode_state_record
from include.read_models.balance.model import READ_MODEL


def event_count_and_amount(value: bytes) -> tuple[int, Decimal]:
    """Return (event_count, amount) of a changelog value.

    Raises ValueError when the value is not a state record of the read model `balance`.
    """
    record = decode_state_record(value, lambda _id: READ_MODEL.state_schema)
    return record.event_count, record.state["amount"]
