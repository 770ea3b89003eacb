"""The events that a balance is folded from, as typed values."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from include.kafka.events import TypedEvent

SCHEMAS = Path(__file__).resolve().parent / "schemas"


@dataclass(frozen=True)
class FundsAdded(TypedEvent, schemas=SCHEMAS):
    """Money was added to a customer's balance; `amount` is above zero, with 2 decimals, 18 digits at most."""

    customerId: str  # noqa: N815 - the event's field names are a public format
    amount: Decimal
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    occurredOn: datetime = field(default_factory=lambda: datetime.now(UTC))  # noqa: N815


@dataclass(frozen=True)
class FundsWithdrawn(FundsAdded, schemas=SCHEMAS):
    """Money was withdrawn from a customer's balance; fields as in FundsAdded."""
