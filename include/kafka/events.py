"""Events as typed values, and their bytes on the source topic."""

import io
import uuid
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

import fastavro

from include.kafka.record_schema import event_schema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.wire_format import header


@dataclass(frozen=True)
class FundsAdded:
    """Money was added to a customer's balance; `amount` is above zero, with 2 decimals, 18 digits at most."""

    customerId: str  # noqa: N815 - the event's field names are a public format
    amount: Decimal
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    occurredOn: datetime = field(default_factory=lambda: datetime.now(UTC))  # noqa: N815


@dataclass(frozen=True)
class FundsWithdrawn(FundsAdded):
    """Money was withdrawn from a customer's balance; fields as in FundsAdded."""


Event = FundsAdded | FundsWithdrawn


class EventSerializer:
    """Turns events into Avro in Confluent's framing; registers each type's schema for the topic when first used.

    Raises RegistryUnavailableError or SchemaError from `serialize` when the schema cannot be registered.
    """

    def __init__(self, registry: SchemaRegistry, topic: str) -> None:
        self._registry = registry
        self._topic = topic
        self._writers: dict[str, tuple[bytes, object]] = {}

    def serialize(self, event: Event) -> bytes:
        """Return the value of the event's Kafka record."""
        name = type(event).__name__
        if name not in self._writers:
            schema = event_schema(name)
            schema_id = self._registry.register(self._topic, schema)
            self._writers[name] = (header(schema_id), fastavro.parse_schema(schema.parsed()))
        framing, schema_parsed = self._writers[name]
        buffer = io.BytesIO()
        buffer.write(framing)
        fastavro.schemaless_writer(buffer, schema_parsed, asdict(event))  # type: ignore[arg-type]  # parsed schema
        return buffer.getvalue()


def event_key(event: Event) -> bytes:
    """Return the key of the event's Kafka record: the customer's id in UTF-8."""
    return event.customerId.encode()
