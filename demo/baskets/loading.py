"""Appends the baskets to the log as events, each exactly once, also when a load was interrupted, and reads what the log contains."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
from confluent_kafka import Message

from demo.appending import append_missing, load_lock
from demo.baskets.dataset import EVENT_ID_PREFIX, Basket
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, ensure_topics, partition_count
from include.kafka.wire_format import split
from include.read_models.balance.model import READ_MODEL
from include.settings import KafkaConnection, RegistryConnection, Settings


@dataclass
class Account:
    """The sum and number of one customer's events."""

    amount: Decimal = Decimal("0.00")
    event_count: int = 0

    def add(self, amount: Decimal) -> None:
        """Add one event."""
        self.amount += amount
        self.event_count += 1


@dataclass
class Ledger:
    """The log's events: ids of the baskets, number of duplicates, and customer -> account of all other events."""

    basket_ids: set[str] = field(default_factory=set)
    repeated: int = 0
    others: dict[str, Account] = field(default_factory=dict)


def read_ledger(
    kafka: KafkaConnection,
    registry: RegistryConnection,
    topic: str,
    on_record: Callable[[], None] = lambda: None,
) -> Ledger:
    """Read the whole topic once; returns an empty ledger if the topic does not exist.

    Raises:
        KafkaUnavailableError: the brokers do not answer.
        RegistryUnavailableError: a schema cannot be fetched.
    """
    ledger = Ledger()
    admin = admin_client(kafka, log_level=0)
    partitions = partition_count(admin, topic)
    if partitions is None:
        return ledger
    decoder = _Decoder(SchemaRegistry(registry))
    with closing(log_consumer(kafka)) as consumer:
        for partition in range(partitions):
            for message in read_tail(consumer, topic, partition):
                on_record()
                _add(ledger, decoder, message)
    return ledger


def _add(ledger: Ledger, decoder: "_Decoder", message: Message) -> None:
    event = decoder.decode(message.value())
    if event is None:
        # The stream does not fold it, but writes it to the dead-letter topic.
        return
    name, fields = event
    event_id = str(fields["id"])
    if event_id.startswith(EVENT_ID_PREFIX):
        ledger.repeated += event_id in ledger.basket_ids
        ledger.basket_ids.add(event_id)
    else:
        amount = -fields["amount"] if name == "FundsWithdrawn" else fields["amount"]
        ledger.others.setdefault(str(fields["customerId"]), Account()).add(amount)


class _Decoder:
    """Decodes each event with the schema that it was written with."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._schemas: dict[int, tuple[str, object] | None] = {}

    def decode(self, value: bytes | None) -> tuple[str, dict[str, Any]] | None:
        """Return the event type and its fields; None for a record that is not an event."""
        try:
            schema_id, payload = split(value or b"")
        except ValueError:
            return None
        if schema_id not in self._schemas:
            schema = self._registry.schema_by_id(schema_id)
            self._schemas[schema_id] = (
                (schema.name, fastavro.parse_schema(schema.parsed())) if schema else None
            )
        known = self._schemas[schema_id]
        if known is None:
            return None
        try:
            fields = fastavro.schemaless_reader(BytesIO(payload), known[1], None)  # type: ignore[arg-type]
        except (EOFError, ValueError, IndexError, UnicodeDecodeError, OverflowError):
            return None
        return (
            (known[0], fields)
            if isinstance(fields, dict) and {"id", "customerId", "amount"} <= fields.keys()
            else None
        )


@dataclass(frozen=True)
class LoadResult:
    """The numbers of events that this load appended and that the log already had, and the log's content before the load."""

    appended: int
    present: int
    ledger: Ledger


def load(
    settings: Settings,
    topic: str,
    baskets: Sequence[Basket],
    on_acknowledged: Callable[[int], None] = lambda _: None,
) -> LoadResult:
    """Append the events of the baskets that are missing from the log, and wait until all are acknowledged.

    The log is read first. An event's id is derived from its basket, so a load resumes an interrupted one, and a
    repeated load appends nothing. The events of one household keep their order.

    Args:
        settings: the addresses of the broker and the registry.
        topic: the source topic, created if it does not exist.
        baskets: the baskets to load, in order.
        on_acknowledged: called with the number of these baskets that are in the log so far.

    Raises:
        LoadRunningError: another load is running.
        KafkaUnavailableError: the broker did not acknowledge an event.
    """
    with load_lock(settings.home):
        admin = admin_client(settings.kafka_connection, log_level=0)
        topics = replace(READ_MODEL, source_topic=topic).source_topics(settings.topics)
        ensure_topics(admin, topics, settings.topics.replication_factor)
        ledger = read_ledger(settings.kafka_connection, settings.registry.connection, topic)
        events = [
            event for event in (basket.event() for basket in baskets) if event.id not in ledger.basket_ids
        ]
        present = len(baskets) - len(events)
        appended = append_missing(settings, topic, events, present, on_acknowledged)
        return LoadResult(appended=appended, present=present, ledger=ledger)
